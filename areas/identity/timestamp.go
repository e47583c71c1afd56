package identity

import (
	"time"

	"tare/internal/jsonscan"
)

// timestamp reads a date and time of RFC 3339, section 5.6, as seconds since 1970, without allocating. Fractions are
// left out.
func timestamp(b []byte) (int64, bool) {
	const form = "0000-00-00T00:00:00"
	if len(b) < len(form)+1 {
		return 0, false
	}
	for i := range len(form) {
		digit, same := b[i] >= '0' && b[i] <= '9', b[i] == form[i] || (form[i] == 'T' && b[i] == 't')
		if form[i] == '0' && !digit || form[i] != '0' && !same {
			return 0, false
		}
	}
	two := func(i int) int { return int(b[i]-'0')*10 + int(b[i+1]-'0') }
	year, month, day, hour, minute, second := two(0)*100+two(2), two(5), two(8), two(11), two(14), two(17)
	offset, ok := zone(b[len(form):])
	t := time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC)
	if !ok || t.Day() != day || int(t.Month()) != month || hour > 23 || minute > 59 || second > 59 {
		return 0, false
	}
	return t.Unix() - offset, true
}

// zone reads what follows the seconds: a fraction, and Z or an offset, which it returns in seconds.
func zone(b []byte) (offset int64, ok bool) {
	if b[0] == '.' {
		n := jsonscan.Digits(b[1:])
		if n == 0 {
			return 0, false
		}
		b = b[1+n:]
	}
	switch {
	case len(b) == 1 && (b[0] == 'Z' || b[0] == 'z'):
		return 0, true
	case len(b) != 6 || (b[0] != '+' && b[0] != '-') || jsonscan.Digits(b[1:3]) != 2 || b[3] != ':' ||
		jsonscan.Digits(b[4:6]) != 2:
		return 0, false
	}
	hours, minutes := int64(b[1]-'0')*10+int64(b[2]-'0'), int64(b[4]-'0')*10+int64(b[5]-'0')
	if hours > 23 || minutes > 59 {
		return 0, false
	}
	if offset = hours*3600 + minutes*60; b[0] == '-' {
		offset = -offset
	}
	return offset, true
}
