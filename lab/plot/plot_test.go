package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
)

// elements returns how often each element is in a drawing, which must be well-formed XML.
func elements(t *testing.T, drawing []byte) map[string]int {
	t.Helper()
	found := map[string]int{}
	for decoder := xml.NewDecoder(bytes.NewReader(drawing)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, drawing)
		}
		if element, is := token.(xml.StartElement); is {
			found[element.Name.Local]++
		}
	}
}

func threeLines() Lines {
	l := Lines{Title: "a < b", X: "size", Y: "rate", Logarithmic: true}
	for i, x := range []float64{4, 1, 2} {
		l.Add("ours & up", true, x, "x", float64(i+1))
		l.Add("other", false, x, "x", float64(i+1)+0.01)
		l.Add("third", false, x, "x", float64(i+1)+0.02)
	}
	return l
}

func TestLinesAreDrawn(t *testing.T) {
	var drawing bytes.Buffer
	if err := WriteLines(&drawing, "all", []Lines{threeLines(), threeLines()}); err != nil {
		t.Fatal(err)
	}
	if got := elements(t, drawing.Bytes()); got["polyline"] != 6 || got["circle"] != 18 {
		t.Errorf("drew %v", got)
	}
	if ours := strings.LastIndex(drawing.String(), "<polyline"); ours < strings.LastIndex(drawing.String(), grey+`">`) {
		t.Error("our line is below the others")
	}
}

// Of two points at one place the higher one is drawn, and points are in the order of their places.
func TestPointsOfALine(t *testing.T) {
	l := threeLines()
	l.Add("ours & up", true, 4, "x", 9)
	l.Add("ours & up", true, 2, "x", 0.5)
	drawn := l.drawLine(l.lines[0], l.yAxis(), grey, 0)
	if len(drawn.Dots) != 3 || drawn.EndX != drawn.Dots[2].X || !slices.Contains(l.lines[0].points, point{4, 9}) ||
		!slices.Contains(l.lines[0].points, point{2, 3}) {
		t.Errorf("%+v of %+v", drawn, l.lines[0].points)
	}
}

func TestLabelsDoNotCoverEachOther(t *testing.T) {
	l := threeLines()
	at := slices.Sorted(slices.Values(l.labels(l.yAxis())))
	for i := 1; i < len(at); i++ {
		if math.Abs(at[i]-at[i-1]) < labelHeight {
			t.Errorf("labels at %v", at)
		}
	}
	if at[len(at)-1] > marginTop+plotHeight {
		t.Errorf("a label at %v is below the chart", at[len(at)-1])
	}
}

func TestBarsAreDrawn(t *testing.T) {
	var drawing bytes.Buffer
	chart := Bars{
		Title: "all", Series: []string{"ext4", "tmpfs"}, Mark: 1,
		Groups: []Group{{"a & b", []float64{0.5, 2}}, {"c", []float64{0, 1}}},
	}
	if err := chart.Write(&drawing); err != nil {
		t.Fatal(err)
	}
	const paper, keys, bars = 1, 2, 3
	if got := elements(t, drawing.Bytes()); got["rect"] != paper+keys+bars {
		t.Errorf("drew %v in\n%s", got, drawing.String())
	}
}

// All points and marks lie between bottom and top.
func TestAxes(t *testing.T) {
	for _, extremes := range [][2]float64{{0.02, 0.02}, {1, 1}, {0.05, 5}, {3, 40}, {99, 101}, {1e-3, 1e3}} {
		for _, a := range []axis{linearAxis(extremes[1]), logarithmicAxis(extremes[0], extremes[1])} {
			if a.bottom > extremes[0] || a.top < extremes[1] {
				t.Errorf("from %v to %v for %v", a.bottom, a.top, extremes)
			}
			if len(a.marks) < 2 || a.marks[0] != a.bottom || a.marks[len(a.marks)-1] != a.top {
				t.Errorf("marks %v from %v to %v", a.marks, a.bottom, a.top)
			}
			if a.position(a.top) != marginTop || a.position(a.bottom) != marginTop+plotHeight {
				t.Errorf("%v to %v is drawn from %v to %v", a.bottom, a.top, a.position(a.bottom), a.position(a.top))
			}
		}
	}
}
