package retry

// Trickle is the share of new requests that a sick place goes on getting, so that
// its recovery shows.
const Trickle = 0.02

// Candidate is a place that may get a request.
type Candidate struct {
	// Weight is over 0.
	Weight float64
	// Sick places get a trickle, as long as others are well.
	Sick bool
}

// Choose gives the index of the candidate for a new request; u is uniform in
// [0, 1). Well candidates share by weight. -1 means that there is none.
func Choose(list []Candidate, u float64) int {
	var sick int
	var well float64
	for _, c := range list {
		if c.Sick {
			sick++
		} else {
			well += c.Weight
		}
	}
	if sick == len(list) || sick == 0 {
		return byWeight(list, u, func(Candidate) bool { return true })
	}
	// However many are sick, the well ones keep most of the requests.
	trickle := min(Trickle, 0.5/float64(sick))
	if all := trickle * float64(sick); u < all {
		n := int(u / trickle)
		for i, c := range list {
			if c.Sick {
				if n == 0 {
					return i
				}
				n--
			}
		}
	} else {
		u = (u - all) / (1 - all)
	}
	return byWeight(list, u, func(c Candidate) bool { return !c.Sick })
}

func byWeight(list []Candidate, u float64, in func(Candidate) bool) int {
	var sum float64
	for _, c := range list {
		if in(c) {
			sum += c.Weight
		}
	}
	at, last := u*sum, -1
	for i, c := range list {
		if !in(c) {
			continue
		}
		last = i
		if at -= c.Weight; at < 0 {
			return i
		}
	}
	return last // rounding
}
