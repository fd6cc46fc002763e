# SPDX-License-Identifier: Apache-2.0
# Writes the linker's version script for a library from its headers: each function under the version node that DOCA
# gives it, DOCA_2 or EXPERIMENTAL, so that a program linked against either runs with the other.

/^DOCA_(STABLE|EXPERIMENTAL)$/ {
	node = $0 == "DOCA_STABLE" ? "DOCA_2" : "EXPERIMENTAL"
	next
}

node != "" && match($0, /doca_[a-z0-9_]+\(/) {
	names[node] = names[node] "\t\t" substr($0, RSTART, RLENGTH - 1) ";\n"
	node = ""
}

function write_node(name, globals, locals) {
	if (globals != "")
		printf "%s {\n\tglobal:\n%s%s};\n", name, globals, locals
}

END {
	write_node("INTERNAL", "\t\tpriv_doca_*;\n", "\tlocal:\n\t\t*;\n")
	write_node("DOCA_2", names["DOCA_2"], "")
	write_node("EXPERIMENTAL", names["EXPERIMENTAL"], "")
}
