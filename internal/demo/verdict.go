package demo

import "fmt"

// facts is everything that the words on the page are made from.
type facts struct {
	Proxy        proxyState
	Slow         bool
	DiskFull     bool
	OriginBroken bool
	// Written is the order in the distribution, AtEdge the one in effect.
	Written, AtEdge order
	Health          string // of karui, as the watchdog found it: up, down or empty
	GoodRounds      int
	GoodRoundsNeed  int
	Recent          tally // of the last ten seconds or so
	Sheds           int   // 503s of karui in the last five seconds or so
}

// words is a judgement with its reason.
type words struct {
	Tone  string
	Title string
	Text  string
}

// serves tells whether the edge gets good answers from karui in time.
func (f facts) serves() bool { return f.Proxy == proxyUp && !f.Slow }

// verdict says in a few words how viewers fare.
func (f facts) verdict() words {
	switch {
	case f.OriginBroken && !f.serves():
		return words{
			toneBad, "karui and the origin are both out of order.",
			"The edge goes on with what it still holds. For the rest nobody has an image: no set-up can protect from that. The watchdog does not swap, since the origin does not answer either.",
		}
	case f.OriginBroken && f.AtEdge == orderOrigin:
		return words{
			toneBad, "The origin is broken, and it comes first.",
			"The edge asks karui second, which goes on with the images that it has kept. An image that nobody asked for before cannot be had from anywhere.",
		}
	case f.OriginBroken && f.Recent.Vain > 0:
		return words{
			toneWarn, "The origin is broken. What is kept goes on.",
			"For what karui cannot give, the edge asks the origin in vain, and goes on with what it keeps. An image that nobody keeps cannot be had from anywhere: that cannot be protected.",
		}
	case f.OriginBroken:
		return words{
			toneWarn, "The origin is broken. Images go on.",
			"karui goes on with the images that it has kept, also past their lifetime. An image that nobody asked for before cannot be had from anywhere: that cannot be protected.",
		}
	case f.AtEdge == orderOrigin && !f.serves():
		return words{
			toneWarn, "karui is out of the way. Images go on, as originals.",
			"Stage 2 is in effect: the edge asks the origin straight away, and nobody waits for karui. When karui is well again, the watchdog puts it first.",
		}
	case f.AtEdge == orderOrigin && f.Written == orderKarui:
		return words{
			toneWarn, "karui is first again. The change is on its way to the edge.",
			"WebP returns in a few seconds, and then as fast as the edge lets go of the originals that it keeps.",
		}
	case f.AtEdge == orderOrigin:
		return words{
			toneWarn, "karui is well again. The watchdog makes sure.",
			fmt.Sprintf("It puts karui first after %s good in a row; it counts %d. Each outage within a day doubles that number.", rounds(f.GoodRoundsNeed), f.GoodRounds),
		}
	case !f.serves() && f.Written == orderOrigin:
		return words{
			toneWarn, "The watchdog has swapped the order. Images go on, as originals.",
			"The change is on its way to the edge. Until it is there, the edge still tries karui first for each image, and then asks the origin.",
		}
	case f.Slow && f.Proxy == proxyUp:
		return words{
			toneWarn, "karui is too slow. Images go on, but late.",
			fmt.Sprintf("Stage 1 carries: the edge waits %s for karui, and then asks the origin. The watchdog will see it too and take karui out of the way.", seconds(responseTimeout)),
		}
	case f.Proxy == proxyStarting:
		return words{toneWarn, "karui starts. Images go on, as originals.", "Until it serves, the edge asks the origin for each image."}
	case f.Proxy != proxyUp:
		return words{
			toneWarn, "karui is down. Images go on, as originals.",
			"Stage 1 carries: for each image the edge finds nobody at karui's address, and asks the origin. In some seconds the watchdog will swap the order.",
		}
	case f.Sheds > 0:
		return words{
			toneWarn, "karui turns some requests away. Images go on.",
			"It answers 503 with no-store while it is under stress, and the edge asks the origin for those images.",
		}
	case f.DiskFull:
		return words{
			toneWarn, "The disk of karui's cache is full. Images go on.",
			"karui keeps nothing new on disk. It answers from memory, and converts again what it could not keep.",
		}
	}
	return words{
		toneGood, "All is well.",
		"karui comes first. Browsers that take WebP get it, all others get the originals.",
	}
}

// firstStage says how the edge's failover stands.
func (f facts) firstStage() words {
	switch {
	case f.AtEdge == orderOrigin:
		return words{tonePlain, "Not needed now", "The origin comes first at the edge, so that nobody runs into karui."}
	case f.OriginBroken && !f.serves():
		return words{toneBad, "Nowhere to turn to", "The edge asks the origin instead, and the origin fails too."}
	case f.Recent.Vain > 0:
		return f.inVain()
	case f.Recent.Failovers > 0:
		return words{toneWarn, "Carries", fmt.Sprintf("In the last ten seconds %s came from the origin instead.", images(f.Recent.Failovers))}
	case !f.serves():
		return words{toneWarn, "Ready to carry", "The next image that the edge does not hold comes from the origin instead."}
	}
	return words{toneGood, "Ready", "Nobody has needed it in the last ten seconds."}
}

// inVain is the first stage after the origin, asked second, failed as well.
func (f facts) inVain() words {
	vain, kept, came := f.Recent.Vain, f.Recent.Kept, f.Recent.Failovers-f.Recent.Vain
	w := words{toneWarn, "In vain", fmt.Sprintf("In the last ten seconds the edge asked the origin %s, in vain; it showed what it kept.", times(vain))}
	switch {
	case kept == 0:
		w.Tone = toneBad
		w.Text = fmt.Sprintf("In the last ten seconds the edge asked the origin %s, in vain, and kept nothing that it could show.", times(vain))
	case kept < vain:
		w.Tone = toneBad
		w.Text = fmt.Sprintf("In the last ten seconds the edge asked the origin %s, in vain; it showed what it kept %s, and for the rest it had nothing.", times(vain), times(kept))
	}
	if came > 0 {
		w.Title = "Carries in part"
		w.Text += fmt.Sprintf(" Besides, %s came from the origin.", images(came))
	}
	return w
}

// secondStage says how the order in the origin group stands.
func (f facts) secondStage() words {
	switch {
	case f.Written == orderUnknown:
		return words{toneBad, "Order not known", "The origin group cannot be read."}
	case f.Written == orderOrigin && f.AtEdge == orderKarui:
		return words{toneWarn, "Swapped, on its way", "The origin is first in the distribution; the edge does not have it yet."}
	case f.Written == orderKarui && f.AtEdge == orderOrigin:
		return words{toneWarn, "Swapped back, on its way", "karui is first in the distribution; the edge does not have it yet."}
	case f.Written == orderOrigin && f.serves():
		return words{toneWarn, "In effect", fmt.Sprintf("karui answers again: %d of %s good in a row until it is put first.", f.GoodRounds, rounds(f.GoodRoundsNeed))}
	case f.Written == orderOrigin:
		return words{toneWarn, "In effect", "The origin is first, until karui is well."}
	case f.Health == "down" && f.OriginBroken:
		return words{toneBad, "Does not swap", "karui is down and the origin does not answer: there is nobody to put first."}
	case f.Health == "down":
		return words{toneWarn, "Swaps now", "The watchdog found karui down."}
	case !f.serves():
		return words{toneWarn, "Looks", "The watchdog has not noticed yet: its next round will."}
	}
	return words{toneGood, "Ready", "karui is first, and every round finds it up."}
}

// proxyWords, originWords and edgeWords are the states of the parts.
func (f facts) proxyWords() words {
	switch {
	case f.Proxy == proxyStarting:
		return words{toneWarn, "starting", ""}
	case f.Proxy == proxyStopped:
		return words{toneBad, "stopped", ""}
	case f.Proxy != proxyUp:
		return words{toneBad, "ended", ""}
	case f.Slow:
		return words{toneWarn, fmt.Sprintf("%s late", seconds(slowness)), ""}
	case f.Sheds > 0 && !f.OriginBroken:
		return words{toneWarn, "turns some away", ""}
	case f.DiskFull:
		return words{toneWarn, "disk full", ""}
	}
	return words{toneGood, "up", ""}
}

func (f facts) originWords() words {
	if f.OriginBroken {
		return words{toneBad, "answers 500", ""}
	}
	return words{toneGood, "up", ""}
}

func rounds(n int) string {
	if n == 1 {
		return "1 round"
	}
	return fmt.Sprintf("%d rounds", max(n, 0))
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func images(n int) string {
	if n == 1 {
		return "1 image"
	}
	return fmt.Sprintf("%d images", n)
}
