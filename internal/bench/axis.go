package bench

import "math"

// axis is the upright one.
type axis struct {
	of          func(float64) float64 // linear, or the logarithm
	bottom, top float64
	marks       []float64 // ascending, from bottom to top
}

// at is the place of a value in pixels, from above.
func (a axis) at(value float64) float64 {
	return marginTop + plotHeight*(a.of(a.top)-a.of(value))/(a.of(a.top)-a.of(a.bottom))
}

func (c chart) upright() axis {
	lowest, highest := c.extremes()
	if c.decades {
		return decadeAxis(lowest, highest)
	}
	return linearAxis(highest)
}

// extremes are those of all points above zero; both 1 if there are none.
func (c chart) extremes() (lowest, highest float64) {
	lowest = math.Inf(1)
	for _, l := range c.lines {
		for _, p := range l.points {
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

// linearAxis reaches from zero to above the highest value, by a round step.
func linearAxis(highest float64) axis {
	const steps = 6
	power := math.Pow(10, math.Floor(math.Log10(highest/steps)))
	step := 10 * power
	for _, factor := range []float64{5, 2.5, 2, 1} {
		if factor*power*steps >= highest {
			step = factor * power
		}
	}
	a := axis{of: func(v float64) float64 { return v }}
	for i := 0; a.top < highest; i++ {
		a.top = float64(i) * step
		a.marks = append(a.marks, a.top)
	}
	return a
}

// decadeAxis reaches from below the lowest value to above the highest, by 1, 2, 5, 10.
func decadeAxis(lowest, highest float64) axis {
	a := axis{of: math.Log10}
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
