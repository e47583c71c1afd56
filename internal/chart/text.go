package chart

import (
	"math"
	"strconv"
	"strings"
	"unicode"
)

// ellipsis ends a label that was cut. No label or description is longer than longest, in bytes.
const (
	ellipsis = "…"
	longest  = 4000
)

// textWidth estimates the width of s at a font size. The reader's font is unknown, so it takes the advances of DejaVu
// Sans, the widest of the usual sans-serif fonts: what fits in it fits in the others.
func textWidth(s string, size float64) float64 {
	var em float64
	for _, r := range s {
		em += advance(r)
	}
	return em * size
}

// advance returns a character's width in em.
func advance(r rune) float64 {
	switch {
	case unicode.Is(unicode.Mn, r):
		return 0
	case strings.ContainsRune("ijlI|.,:;' \u00a0", r):
		return 0.34
	case strings.ContainsRune("frt()[]{}/!-·\"", r):
		return 0.42
	case strings.ContainsRune("mMwW@%", r):
		return 0.98
	case unicode.IsUpper(r):
		return 0.72
	case r < 0x2000:
		return 0.64
	case r == '–' || r == '’' || r == '…' || r == '−':
		return 0.84
	default:
		return 1.05
	}
}

// cut shortens s to a width, ending it with an ellipsis.
func cut(s string, width, size float64) string {
	const hair = 1e-6 // rooms are sums of widths, and sums differ in their last bits
	if textWidth(s, size) <= width+hair {
		return s
	}
	room := width - textWidth(ellipsis, size)
	for i, r := range s {
		if room -= advance(r) * size; room < 0 {
			return strings.TrimRight(s[:i], " ") + ellipsis
		}
	}
	return s
}

// oneLine makes a label of s. Line breaks and tabs become spaces, since a text element has one line; characters that
// XML cannot hold become U+FFFD; and those that reorder the text around them go, since they could make a number read
// otherwise.
func oneLine(s string) string {
	if len(s) > 8*longest {
		s = s[:8*longest] // what comes after could not be shown; measuring it takes time
	}
	plain := strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Bidi_Control, r):
			return -1
		case unicode.IsControl(r) && !unicode.IsSpace(r), r == 0xFFFE, r == 0xFFFF:
			return unicode.ReplacementChar
		}
		return r
	}, s)
	plain = strings.Join(strings.Fields(plain), " ")
	if len(plain) > longest {
		plain = strings.ToValidUTF8(plain[:longest], "") + ellipsis
	}
	return plain
}

// name makes an XML id of whatever the caller passes.
func name(id string) string {
	id = id[:min(len(id), longest/10)]
	clean := strings.Map(func(r rune) rune {
		if r < 128 && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_') {
			return r
		}
		return '-'
	}, id)
	if clean == "" || !unicode.IsLetter(rune(clean[0])) {
		return "c" + clean
	}
	return clean
}

// coord writes a position with one decimal, which is finer than a pixel.
func coord(v float64) string {
	s := strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
	if s == "-0" {
		return "0"
	}
	return s
}

// write returns the axis' Format, or four significant digits.
func (a Axis) write(v float64) string { return written(a.Format, v) }

func written(format func(float64) string, v float64) string {
	if format == nil {
		return significant(v, 4)
	}
	return oneLine(format(v))
}

// significant writes a number with so many significant digits, without an exponent.
func significant(v float64, digits int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', digits-1, 64), 64)
	if err != nil {
		short = v
	}
	return strconv.FormatFloat(short, 'f', -1, 64)
}
