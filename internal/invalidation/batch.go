package invalidation

// CloudFront's quotas of what may be in progress for one distribution at a time:
// paths without a star and, apart from these, paths with one. Documented.
const (
	MaxExact     = 3000
	MaxWildcards = 15
)

// Use is how much of the quotas something takes.
type Use struct{ Exact, Wildcards int }

// UseOf counts paths.
func UseOf(paths []string) (u Use) {
	for _, p := range paths {
		if Wildcard(p) {
			u.Wildcards++
		} else {
			u.Exact++
		}
	}
	return u
}

// Plus adds uses up.
func (u Use) Plus(other Use) Use {
	return Use{u.Exact + other.Exact, u.Wildcards + other.Wildcards}
}

// Fits tells whether it is within the quotas.
func (u Use) Fits() bool { return u.Exact <= MaxExact && u.Wildcards <= MaxWildcards }

// Batches cuts paths into as few batches as the quotas allow, in their order.
func Batches(paths []string) [][]string {
	var out [][]string
	begin, used := 0, Use{}
	for i := range paths {
		if next := used.Plus(UseOf(paths[i : i+1])); next.Fits() {
			used = next
			continue
		}
		out = append(out, paths[begin:i:i])
		begin, used = i, UseOf(paths[i:i+1])
	}
	if begin < len(paths) {
		out = append(out, paths[begin:])
	}
	return out
}
