// Package terraform holds no Go code. The modules beside it have tests of their
// own for terraform test; the tests here are of what these cannot reach: that the
// function for viewer requests is the tested one, and that the start scripts of
// machines are whole in every form that the modules give them.
//
// Nothing here shows that AWS accepts what the modules ask for.
package terraform
