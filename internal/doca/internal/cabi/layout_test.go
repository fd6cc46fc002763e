//go:build cgo

package cabi

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"
)

const layoutProgram = `
#include <stdio.h>
#include "channel.h"
#include "engine.h"
#define FIELD(structure, field) \
	printf("%s.%s %zu %zu\n", #structure, #field, \
	       offsetof(struct structure, field), sizeof(((struct structure *)0)->field))
int main(void)
{
	FIELD(engine_copy, source_map);
	FIELD(engine_copy, target_map);
	FIELD(engine_copy, source);
	FIELD(engine_copy, target);
	FIELD(engine_copy, len);
	FIELD(engine_copy, tag);
	FIELD(engine_copy, more);
	FIELD(engine_range, source);
	FIELD(engine_range, len);
	FIELD(engine_completion, tag);
	FIELD(engine_completion, status);
	FIELD(channel_event, kind);
	FIELD(channel_event, status);
	FIELD(channel_event, connection);
	FIELD(channel_event, tag);
	FIELD(channel_event, offset);
	FIELD(channel_event, len);
	FIELD(channel_event, state);
}
`

// Structures that Go and C share must have the same fields at the same offsets.
func TestStructuresHaveOneLayout(t *testing.T) {
	var c Copy
	var r Range
	var d Completion
	var e Event
	want := strings.Join([]string{
		field("engine_copy.source_map", unsafe.Offsetof(c.SourceMap), unsafe.Sizeof(c.SourceMap)),
		field("engine_copy.target_map", unsafe.Offsetof(c.TargetMap), unsafe.Sizeof(c.TargetMap)),
		field("engine_copy.source", unsafe.Offsetof(c.Source), unsafe.Sizeof(c.Source)),
		field("engine_copy.target", unsafe.Offsetof(c.Target), unsafe.Sizeof(c.Target)),
		field("engine_copy.len", unsafe.Offsetof(c.Len), unsafe.Sizeof(c.Len)),
		field("engine_copy.tag", unsafe.Offsetof(c.Tag), unsafe.Sizeof(c.Tag)),
		field("engine_copy.more", unsafe.Offsetof(c.More), unsafe.Sizeof(c.More)),
		field("engine_range.source", unsafe.Offsetof(r.Source), unsafe.Sizeof(r.Source)),
		field("engine_range.len", unsafe.Offsetof(r.Len), unsafe.Sizeof(r.Len)),
		field("engine_completion.tag", unsafe.Offsetof(d.Tag), unsafe.Sizeof(d.Tag)),
		field("engine_completion.status", unsafe.Offsetof(d.Status), unsafe.Sizeof(d.Status)),
		field("channel_event.kind", unsafe.Offsetof(e.Kind), unsafe.Sizeof(e.Kind)),
		field("channel_event.status", unsafe.Offsetof(e.Status), unsafe.Sizeof(e.Status)),
		field("channel_event.connection", unsafe.Offsetof(e.Connection), unsafe.Sizeof(e.Connection)),
		field("channel_event.tag", unsafe.Offsetof(e.Tag), unsafe.Sizeof(e.Tag)),
		field("channel_event.offset", unsafe.Offsetof(e.Offset), unsafe.Sizeof(e.Offset)),
		field("channel_event.len", unsafe.Offsetof(e.Len), unsafe.Sizeof(e.Len)),
		field("channel_event.state", unsafe.Offsetof(e.State), unsafe.Sizeof(e.State)),
	}, "")
	if got := runC(t, layoutProgram); got != want {
		t.Errorf("C has\n%sand Go has\n%s", got, want)
	}
}

func field(name string, offset, size uintptr) string {
	return fmt.Sprintf("%s %d %d\n", name, offset, size)
}

const namesProgram = `
#include <stdio.h>
#include "soft.h"
void soft_log(uint32_t level, const char *message) {}
int main(void)
{
	for (int code = 0; code <= DOCA_ERROR_SKIPPED; code++)
		printf("%s\n", soft_doca_error_get_name(code));
}
`

// Both lists of names are written by hand, one in each language.
func TestStatusNamesAreDOCAs(t *testing.T) {
	var want strings.Builder
	for _, name := range statusNames {
		want.WriteString(name + "\n")
	}
	if got := runC(t, namesProgram, softdoca+"device/error.c", "-I"+softdoca+"device"); got != want.String() {
		t.Errorf("C has\n%sand Go has\n%s", got, want.String())
	}
}
