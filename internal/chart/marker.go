package chart

import "strings"

// marker paints a shape with a radius around a position.
func (c *canvas) marker(m shape, x, y, r float64, hollow bool, title string) {
	fill, width := "currentColor", ""
	if hollow {
		fill, width = "none", "1.5"
	}
	element, attrs := "path", []any{"class", "dot", "d", outline(m, x, y, r), "fill", fill}
	if m == circle {
		element, attrs = "circle", []any{"class", "dot", "cx", x, "cy", y, "r", coord(r), "fill", fill}
	}
	if hollow || m == cross {
		attrs = append(attrs, "stroke", "currentColor", "stroke-width", width)
	}
	if title == "" {
		c.empty(element, attrs...)
		return
	}
	c.open(element, attrs...)
	c.leaf("title", title)
	c.close(element)
}

// outline returns the path of a marker; all have about the same area.
func outline(m shape, x, y, r float64) string {
	var path strings.Builder
	corners := []xy{{-r, -r}, {r, -r}, {r, r}, {-r, r}}
	switch m {
	case triangle:
		corners = []xy{{0, -1.15 * r}, {1.25 * r, 1.15 * r}, {-1.25 * r, 1.15 * r}}
	case diamond:
		corners = []xy{{0, -1.35 * r}, {1.35 * r, 0}, {0, 1.35 * r}, {-1.35 * r, 0}}
	case cross:
		t := 0.35 * r
		corners = []xy{
			{-t, -r}, {t, -r}, {t, -t}, {r, -t}, {r, t}, {t, t}, {t, r}, {-t, r}, {-t, t}, {-r, t}, {-r, -t}, {-t, -t},
		}
	case wedge:
		corners = []xy{{0, 1.15 * r}, {1.25 * r, -1.15 * r}, {-1.25 * r, -1.15 * r}}
	case hourglass:
		corners = []xy{{-1.1 * r, -1.1 * r}, {1.1 * r, -1.1 * r}, {-1.1 * r, 1.1 * r}, {1.1 * r, 1.1 * r}}
	case ex:
		corners = []xy{
			{-r, -0.6 * r},
			{-0.6 * r, -r},
			{0, -0.4 * r},
			{0.6 * r, -r},
			{r, -0.6 * r},
			{0.4 * r, 0},
			{r, 0.6 * r},
			{0.6 * r, r},
			{0, 0.4 * r},
			{-0.6 * r, r},
			{-r, 0.6 * r},
			{-0.4 * r, 0},
		}
	case bar:
		corners = []xy{{-0.5 * r, -1.4 * r}, {0.5 * r, -1.4 * r}, {0.5 * r, 1.4 * r}, {-0.5 * r, 1.4 * r}}
	case circle, square:
	}
	for i, q := range corners {
		move(&path, "ML"[min(i, 1)], xy{x + q.x, y + q.y})
	}
	path.WriteByte('Z')
	return path.String()
}
