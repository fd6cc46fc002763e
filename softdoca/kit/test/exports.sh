#!/usr/bin/env bash
# Each shared library exports what its headers declare, under the version that they give it, and nothing else. Each has
# its name, and needs no library it should not.
#
#   exports.sh KIT    the kit's directory
set -euo pipefail

kit=${1:?usage: exports.sh KIT}
failed=0

complain() {
	echo "exports: $*" >&2
	failed=1
}

# "doca_dma_create DOCA_2", one a line, from the marks in the headers.
declared() {
	awk '/^DOCA_(STABLE|EXPERIMENTAL)$/ { node = $0 == "DOCA_STABLE" ? "DOCA_2" : "EXPERIMENTAL"; next }
		node != "" && match($0, /doca_[a-z0-9_]+\(/) { print substr($0, RSTART, RLENGTH - 1), node; node = "" }' "$@" |
		sort
}

exported() {
	nm -D --defined-only "$1" | awk '$2 != "A" { sub("@@", " ", $3); print $3 }' | sort
}

# $1: library, then the headers.
check_functions() {
	local library=$1 expected
	shift
	expected=$(declared "${@/#/$kit/include/doca_}")
	[ "$library" != common ] ||
		expected=$(printf '%s\n' "$expected" 'priv_doca_describe_model INTERNAL' 'priv_doca_dpa_ops INTERNAL' \
			'priv_doca_ops INTERNAL' | sort)
	diff <(echo "$expected") <(exported "$kit/lib/libdoca_$library.so") ||
		complain "libdoca_$library: the headers have '<', the library has '>'"
}

# $1: library, $2: what it needs of ours and others, sorted.
check_identity() {
	local file=$kit/lib/libdoca_$1.so needed
	readelf -d "$file" | grep -q "SONAME.*\[libdoca_$1.so.2\]" || complain "libdoca_$1 has another SONAME"
	[ "$(readlink "$file")" = "libdoca_$1.so.2" ] || complain "libdoca_$1.so is no link to .so.2"
	needed=$(readelf -d "$file" | sed -n 's/.*NEEDED.*\[\(lib\(doca\|json\)[^]]*\)\].*/\1/p' | sort | tr '\n' ' ')
	[ "$needed" = "$2" ] || complain "libdoca_$1 needs \"$needed\", not \"$2\""
}

# The archives hide their inside too.
check_archive() {
	local extra
	extra=$(nm -g --defined-only "$kit/lib/libdoca_$1.a" | awk 'NF == 3 && $3 !~ /^(priv_)?doca_/ { print $3 }')
	[ -z "$extra" ] || complain "libdoca_$1.a also defines $extra"
}

check_functions common error.h version.h log.h dev.h mmap.h mmap_advise.h buf.h buf_array.h \
	buf_inventory.h buf_pool.h clock.h ctx.h pe.h sync_event.h
check_functions dma dma.h
check_functions comch comch.h comch_consumer.h comch_msgq.h comch_producer.h
check_functions dpa dpa.h dpa_dev.h dpa_dev_buf.h dpa_dev_comch_msgq.h
check_functions argp argp.h
check_identity common ''
check_identity dma 'libdoca_common.so.2 '
check_identity comch 'libdoca_common.so.2 '
check_identity dpa 'libdoca_common.so.2 '
check_identity argp 'libdoca_common.so.2 libjson-c.so.5 '
for library in common dma comch dpa argp; do
	check_archive "$library"
done
[ "$failed" -eq 0 ] && echo "exports: ok"
