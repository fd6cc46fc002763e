package cabi

import "testing"

func TestStatusHasANameForEveryCode(t *testing.T) {
	for status, want := range map[Status]string{
		Success: "DOCA_SUCCESS", Unknown: "DOCA_ERROR_UNKNOWN", InProgress: "DOCA_ERROR_IN_PROGRESS",
		AlreadyExist: "DOCA_ERROR_ALREADY_EXIST", Skipped: "DOCA_ERROR_SKIPPED",
		Skipped + 1: "DOCA_ERROR_31", -1: "DOCA_ERROR_-1", 1 << 30: "DOCA_ERROR_1073741824",
	} {
		if status.Error() != want {
			t.Errorf("%d is %q, want %q", int32(status), status.Error(), want)
		}
	}
}
