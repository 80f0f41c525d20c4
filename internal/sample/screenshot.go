package sample

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"

	"golang.org/x/image/font"
	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/math/fixed"
)

const (
	screenWidth  = 1280
	screenHeight = 800
)

// Screenshot draws the window of a shop's back office: flat areas, thin lines and
// small text. The result is a PNG.
func Screenshot() []byte {
	s := screen{image.NewNRGBA(image.Rect(0, 0, screenWidth, screenHeight))}
	s.box(0, 0, screenWidth, screenHeight, 0xf6f7f9)
	s.box(0, 0, screenWidth, 36, 0x2b3440)
	for i, c := range []uint32{0xff5f57, 0xfebc2e, 0x28c840} {
		s.box(14+20*i, 12, 12, 12, c)
	}
	s.text(560, 23, "Orders - example shop", 0xe6ebf0)
	s.sidebar()
	s.chart()
	s.table()
	return encodePNG(s.img)
}

type screen struct{ img *image.NRGBA }

func ink(c uint32) color.NRGBA {
	return color.NRGBA{uint8(c >> 16), uint8(c >> 8), uint8(c), 255}
}

func (s screen) box(x, y, w, h int, c uint32) {
	draw.Draw(s.img, image.Rect(x, y, x+w, y+h), image.NewUniform(ink(c)), image.Point{}, draw.Src)
}

func (s screen) text(x, y int, text string, c uint32) {
	d := font.Drawer{
		Dst: s.img, Src: image.NewUniform(ink(c)), Face: basicfont.Face7x13,
		Dot: fixed.P(x, y),
	}
	d.DrawString(text)
}

func (s screen) sidebar() {
	s.box(0, 36, 200, screenHeight-36, 0xe9edf1)
	for i, word := range []string{"Dashboard", "Orders", "Products", "Customers", "Images", "Shipping", "Reports", "Settings"} {
		y := 60 + 34*i
		tone := uint32(0x44505c)
		if word == "Orders" {
			s.box(8, y-4, 184, 28, 0x1b7f79)
			tone = 0xffffff
		}
		s.box(22, y+4, 12, 12, 0x9fb0bd)
		s.text(46, y+15, word, tone)
	}
}

func (s screen) chart() {
	s.box(224, 60, 1032, 240, 0xffffff)
	s.text(240, 84, "Revenue, last 40 days", 0x2b3440)
	for i := range 5 {
		y := 110 + 40*i
		s.box(280, y, 960, 1, 0xdde3e8)
		s.text(240, y+4, fmt.Sprintf("%3dk", 40-10*i), 0x7a8794)
	}
	for day := range 40 {
		h := 20 + int(130*clouds(float64(day)*0.35, 1, 3, 7))
		c := uint32(0x5bb5ae)
		if day%7 > 4 {
			c = 0xf2a65a
		}
		s.box(288+24*day, 270-h, 16, h, c)
	}
}

func (s screen) table() {
	s.box(224, 320, 1032, 456, 0xffffff)
	columns := []struct {
		x    int
		name string
	}{{240, "Order"}, {340, "Customer"}, {560, "Product"}, {860, "Amount"}, {980, "Status"}, {1120, "Shipped"}}
	for _, c := range columns {
		s.text(c.x, 344, c.name, 0x7a8794)
	}
	names := []string{"Tanaka Hanako", "Jane Miller", "Suzuki Ichiro", "Anna Schmidt", "Sato Yuki", "Paul Martin"}
	goods := []string{"Feather duster, large", "Paper lantern, white", "Bamboo chair", "Rice paper, 50 sheets", "Kite, red and blue"}
	for row := range 17 {
		y := 356 + 24*row
		if row%2 == 0 {
			s.box(224, y, 1032, 24, 0xf3f6f8)
		}
		pick := func(n int, seed uint32) int { return int(hash(row, 3, seed) * float64(n) * 0.999) }
		cells := []string{
			fmt.Sprintf("#%05d", 10412-row), names[pick(len(names), 1)], goods[pick(len(goods), 2)],
			fmt.Sprintf("%6.2f", 5+300*hash(row, 4, 3)), "paid", fmt.Sprintf("2026-01-%02d", 28-row),
		}
		for i, cell := range cells {
			s.text(columns[i].x, y+16, cell, 0x2b3440)
		}
		s.box(1020, y+8, 9, 9, 0x28a06a)
	}
}
