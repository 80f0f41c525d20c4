// Package nodes purges on all nodes of a cluster and then at the edge, from outside:
// through their admin listeners, as a command does.
//
// Guaranteed: the edge is asked for only after every node that was named has
// acknowledged; where one has not, it is named, the others have purged all the same,
// and the edge is left alone. Not guaranteed: that all nodes are named.
package nodes
