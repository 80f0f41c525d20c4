package mail

// The fates of a mail.
const (
	FateWaiting = "waiting"
	FateSent    = "sent" // to at least one recipient
	FateGivenUp = "given up"
)

// Fate tells what became of an event's mail: one of the fates, or nothing where there
// is no such mail, or it went out so long ago that this is forgotten.
func (m *Mailer) Fate(id string) string {
	// As long as a mail is in two places, the later one counts.
	for _, place := range []struct{ name, fate string }{{placeSent, FateSent}, {placeFailed, FateGivenUp}, {"", FateWaiting}} {
		if there, err := m.store.has(place.name, id); err == nil && there {
			return place.fate
		}
	}
	return ""
}
