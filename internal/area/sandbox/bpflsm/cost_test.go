package bpflsm

import (
	"strconv"

	"golang.org/x/sys/unix"
)

func timeOpens(file, number string) error {
	_, err := strconv.Atoi(number)
	_ = unix.ENOENT
	_ = file
	return err
}
