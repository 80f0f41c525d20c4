package invalidation

// CloudFront's quotas of what may be in progress for one distribution at a time:
// paths without a star and, apart from these, paths with one. Documented.
const (
	MaxExact     = 3000
	MaxWildcards = 15
)

// maxBatchBytes bounds the paths of one batch together, well below what an answer or a
// request of the API may hold.
const maxBatchBytes = 1 << 20

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

// Batches cuts paths, in their order, where the quotas or a bound of bytes want it.
func Batches(paths []string) [][]string {
	var out [][]string
	begin, used, size := 0, Use{}, 0
	for i, path := range paths {
		next := used.Plus(UseOf(paths[i : i+1]))
		if i > begin && (!next.Fits() || size+len(path) > maxBatchBytes) {
			out = append(out, paths[begin:i:i])
			begin, next, size = i, UseOf(paths[i:i+1]), 0
		}
		used, size = next, size+len(path)
	}
	if begin < len(paths) {
		out = append(out, paths[begin:])
	}
	return out
}
