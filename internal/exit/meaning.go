package exit

// Meaning is what an exit code tells a user, in the help and the reference.
type Meaning struct {
	Codes string // one, or several with commas
	Text  string
	More  string // behind the text in the reference; may be empty
}

// Meanings are the exit codes of all commands, in their order.
var Meanings = [...]Meaning{
	{"0", "done; verified and durable as requested", ""},
	{"1", "any other failure", ""},
	{"3", "usage or configuration", "also a resource limit that is too low (`ulimit -n`, `-u`, `-v`)"},
	{"4", "source: on neither side, different on both, unreadable, neither a regular file nor a directory", ""},
	{"5", "destination: exists, no space, no permission", "also neither a regular file nor a directory"},
	{"6", "device, driver or capability missing", ""},
	{"7", "peer absent, lost or timed out; outcome unknown", ""},
	{"8", "refused: key not trusted, right missing, not authenticated",
		"also a file of keys that other users can change"},
	{"9", "digest mismatch", "the data that arrived differs from the data that was sent, or was expected"},
	{"10", "source changed or vanished during the copy", "also the target of `sync --delete`"},
	{"11", "protocol, version or peer misbehaviour", ""},
	{"12", "some of several failed (sources, peers, entries, verify)", "the others did not"},
	{"13", "hardware not available (--require-hw)", ""},
	{"14", "stopped by a limit, such as --timeout", "others are `--max-duration`, `--max-bytes`, `--max-holes`, " +
		"`--max-entries` and `--max-delete`, the limits of a daemon, and the guards of `sync --delete`"},
	{"129", "SIGHUP, unless it was ignored at the start (nohup); as SIGTERM", ""},
	{"130, 143", "SIGINT, SIGTERM: stopped, resumable; a second one kills",
		"a receiver that has already renamed its file ends with 0"},
	{"141", "SIGPIPE: a command's output was closed; a copy continues instead", ""},
}
