package negotiate

const (
	failureSize = 12 // without the text
	resultSize  = 8
)

// Failure is why an entry is not transferred. The rest of the transfer goes on.
type Failure struct {
	Entry uint32
	Code  AbortCode
	Text  string // as received, at most MaxAbortText bytes; may contain any bytes
}

// AppendFailure appends a FAILURE. It truncates the text to MaxAbortText bytes and replaces invalid UTF-8.
func AppendFailure(dst []byte, f Failure) []byte { return appendFailure(dst, f, MaxAbortText) }

func appendFailure(dst []byte, f Failure, limit int) []byte {
	c := sending(dst, TypeFailure)
	f.Code, f.Text = f.Code.known(), truncateText(f.Text, limit)
	f.fields(&c)
	return c.all()
}

// DecodeFailure decodes a FAILURE. It fails with ErrMalformed.
func DecodeFailure(msg []byte) (f Failure, err error) {
	c := receiving(msg, TypeFailure)
	f.fields(&c)
	f.Code = f.Code.known()
	return f, c.end()
}

func (f *Failure) fields(c *codec) {
	integer(c, &f.Entry)
	c.reason(&f.Code, &f.Text, MaxAbortText)
}

// MaxResults returns the number of results in a message of maxMessage bytes.
func MaxResults(maxMessage int) int { return max(0, maxMessage-listSize) / resultSize }

// AppendResults appends a RESULTS: the entries with these numbers are committed.
func AppendResults(dst []byte, entries []uint32) []byte {
	return encodeList(dst, TypeResults, entries, resultFields)
}

// DecodeResults appends the numbers of the entries in a RESULTS to dst. It fails with ErrMalformed and returns dst
// unchanged.
func DecodeResults(dst []uint32, msg []byte) ([]uint32, error) {
	return decodeList(dst, msg, TypeResults, resultFields)
}

func resultFields(entry *uint32, c codec) codec {
	integer(&c, entry)
	c.zeros(4) // the result: committed
	return c
}
