package plot

import "math"

// axis is the vertical axis of a chart.
type axis struct {
	scale       func(float64) float64 // scale is the identity for a linear axis, the logarithm for a logarithmic one
	bottom, top float64
	marks       []float64 // ascending, from bottom to top
}

// position returns the position of a value in pixels from the top.
func (a axis) position(value float64) float64 {
	return marginTop + plotHeight*(a.scale(a.top)-a.scale(value))/(a.scale(a.top)-a.scale(a.bottom))
}

func (l *Lines) yAxis() axis {
	lowest, highest := l.extremes()
	if l.Logarithmic {
		return logarithmicAxis(lowest, highest)
	}
	return linearAxis(highest)
}

// extremes returns the lowest and highest value above zero of all points, or 1 and 1 if there are none.
func (l *Lines) extremes() (lowest, highest float64) {
	lowest = math.Inf(1)
	for _, each := range l.lines {
		for _, p := range each.points {
			if p.y > 0 {
				lowest, highest = min(lowest, p.y), max(highest, p.y)
			}
		}
	}
	if highest == 0 {
		return 1, 1
	}
	return lowest, highest
}

// linearAxis returns an axis from zero to a round value above the highest one.
func linearAxis(highest float64) axis {
	const steps = 6
	power := math.Pow(10, math.Floor(math.Log10(highest/steps)))
	step := 10 * power
	for _, factor := range []float64{5, 2.5, 2, 1} {
		if factor*power*steps >= highest {
			step = factor * power
		}
	}
	a := axis{scale: func(v float64) float64 { return v }}
	for i := 0; a.top < highest; i++ {
		a.top = float64(i) * step
		a.marks = append(a.marks, a.top)
	}
	return a
}

// logarithmicAxis returns an axis from below the lowest value to above the highest, with marks at 1, 2, 5 and 10.
func logarithmicAxis(lowest, highest float64) axis {
	a := axis{scale: math.Log10}
	for power := math.Floor(math.Log10(lowest)); ; power++ {
		for _, factor := range []float64{1, 2, 5} {
			mark := factor * math.Pow(10, power)
			if mark <= lowest {
				a.marks = a.marks[:0]
			}
			a.marks = append(a.marks, mark)
			if mark > highest {
				a.bottom, a.top = a.marks[0], mark
				return a
			}
		}
	}
}
