package doca

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
)

// handles knows every open object and who opened it. A copy opens a dozen, so the bookkeeping costs nothing, and a leak
// is found by its stack rather than by its symptoms.
var handles = struct {
	sync.Mutex
	opened map[any][]uintptr
}{opened: map[any][]uintptr{}}

func trackOpen(object any) {
	stack := make([]uintptr, 16)
	stack = stack[:runtime.Callers(3, stack)]
	handles.Lock()
	handles.opened[object] = stack
	handles.Unlock()
}

func trackClose(object any) {
	handles.Lock()
	delete(handles.opened, object)
	handles.Unlock()
}

// OpenHandles lists the objects of this package that are open now, each with the stack that opened it. Tests expect none
// at their end. Safe for concurrent use.
func OpenHandles() []string {
	handles.Lock()
	defer handles.Unlock()
	var list []string
	for object, stack := range handles.opened {
		list = append(list, fmt.Sprintf("%T opened by\n%s", object, formatStack(stack)))
	}
	return list
}

func formatStack(stack []uintptr) string {
	var text strings.Builder
	frames := runtime.CallersFrames(stack)
	for {
		frame, more := frames.Next()
		fmt.Fprintf(&text, "\t%s\n\t\t%s:%d\n", frame.Function, frame.File, frame.Line)
		if !more {
			return text.String()
		}
	}
}
