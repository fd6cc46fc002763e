package doca

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
)

// handles records every open object and the stack that opened it, to find leaks. A copy opens about 12, so the cost is
// negligible.
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

// OpenHandles lists the open objects of this package, each with the stack that opened it. Tests expect none at their
// end. It is safe for concurrent use.
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
