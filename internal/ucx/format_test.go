package ucx

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"testing"
)

// The address of a worker over TCP on two devices, the loopback device and 192.0.2.2, and over shared memory, and the
// key of memory over shared memory, as UCX 1.13.1 makes them.
var (
	addressOverTCP = decoded("20375736098b3c4366" +
		"2012" + "010225df033971b5a7f4f9ffffef00000000" + "cf1917b75138539e3e4bd7e0373701132300" + "82" + "99d9" +
		"2086" + "0002c0000202" + "cf1917b751389763344bd7e0373701132300" + "82" + "997f")
	addressOverMemory = decoded("204a932efb97258a3b" +
		"2000" + "637577cc2b3200f8d74f0000000000004f03" + "88" + "25ae5243582ba486" +
		"4108" + "25df033971b5a774" + "a7d377cc2b32004c3e5077ccab33004f2300" + "88" + "f89c2b6900000040" +
		"2288" + "25df033971b5a774" + "478bbd37063600242e5077ccab3300922100" + "84" + "4c0e0000")
	keyOverMemory = decoded("0700000000000000" + "00" + "00" +
		"18" + "7d0d17680000004000801e6c5f7f00000000100000000000" + "00")
)

// The offsets in addressOverTCP of what tests change.
const (
	deviceOf1 = 9
	overhead1 = deviceOf1 + 2 + 18 + 2
	iface1    = overhead1 + 16
	deviceOf2 = iface1 + 3
	iface2    = deviceOf2 + 2 + 6 + 18
	posix     = 9 + 2 + 27 + 2 + 8 + 19 // the address of posix, in addressOverMemory
)

func decoded(text string) []byte {
	b, err := hex.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return b
}

func TestParseAddress(t *testing.T) {
	for name, test := range map[string]struct {
		address []byte
		devices []int // lengths of the addresses of devices
		ifaces  []int
	}{
		"tcp":           {addressOverTCP, []int{18, 6}, []int{2, 2}},
		"shared memory": {addressOverMemory, []int{0, 8, 8}, []int{8, 8, 4}},
	} {
		entries, err := parseAddress(test.address)
		if err != nil || len(entries) != len(test.devices) {
			t.Fatalf("%s: %d transports, %v", name, len(entries), err)
		}
		for i, e := range entries {
			if len(e.device) != test.devices[i] || len(e.iface) != test.ifaces[i] {
				t.Errorf("%s, transport %d: %+v", name, i, e)
			}
		}
		if more, err := parseAddress(append(slices.Clone(test.address), 1, 2, 3)); err != nil ||
			len(more) != len(entries) {
			t.Errorf("%s with what a newer release appends: %v", name, err)
		}
	}
}

func TestMalformedAddressIsRefused(t *testing.T) {
	with := func(at int, values ...byte) []byte {
		return slices.Replace(slices.Clone(addressOverTCP), at, at+len(values), values...)
	}
	number := func(at int, value float64) []byte {
		return with(at, binary.NativeEndian.AppendUint32(nil, math.Float32bits(float32(value)))...)
	}
	malformed := map[string][]byte{
		"empty": {}, "too long": append(slices.Clone(addressOverTCP), make([]byte, MaxAddress)...),
		"version 2": with(0, 0x21), "version 16": with(0, 0x2f), "no worker": with(0, 0), "client": with(0, 0x60),
		"messages only": with(0, 0xa0), "name beyond the end": with(0, 0x30, 0, 0, 0, 0, 0, 0, 0, 0, 0xff),
		"another device": with(deviceOf2+1, 6), "device beyond the end": with(deviceOf2+1, 0x9f),
		"another transport": with(iface2, 2), "transport beyond the end": with(iface2, 0xbf),
		"endpoint":             with(iface2, 0xc2),
		"no device address":    slices.Delete(with(deviceOf2+1, 0x80), deviceOf2+2, deviceOf2+8),
		"no interface address": slices.Delete(with(iface2, 0x80), iface2+1, iface2+3),
		"without paths":        slices.Insert(with(deviceOf2+1, 0xc6), deviceOf2+2, 0),
		"overhead":             number(overhead1, math.NaN()), "negative overhead": number(overhead1, -1e-6),
		"bandwidth": number(overhead1+4, math.Inf(1)), "no bandwidth": number(overhead1+4, 0),
		"latency": number(overhead1+8, math.NaN()), "long latency": number(overhead1+8, 1e30),
	}
	entry := with(iface1, 2)[overhead1-2 : iface1+3] // which is not the last one of its device
	malformed["129 transports"] = slices.Concat(addressOverTCP[:overhead1-2], bytes.Repeat(entry, maxTransports),
		addressOverTCP[overhead1-2:])
	for name, address := range malformed {
		if err := checkAddress(address, addressOverTCP); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	shorter := slices.Delete(slices.Clone(addressOverMemory), posix, posix+4)
	shorter[posix-1] -= 4
	for name, err := range map[string]error{
		"a shorter path":                   checkAddress(shorter, addressOverMemory),
		"a path longer than that expected": checkAddress(addressOverMemory, shorter),
	} {
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for length := range addressOverTCP {
		if err := checkAddress(addressOverTCP[:length], addressOverTCP); !errors.Is(err, ErrInvalid) {
			t.Errorf("the first %d bytes: %v", length, err)
		}
	}
}

// What a worker of another release, or one with debugging information, has more is no reason to refuse it.
func TestUnusualAddressesAreAccepted(t *testing.T) {
	named := slices.Insert(slices.Clone(addressOverTCP), 9, 3, 'l', 'a', 'b')
	named[0] |= addressName
	paths := slices.Insert(slices.Clone(addressOverTCP), deviceOf2+2, 2, 7)
	paths[deviceOf2+1] |= devicePaths | deviceSystem
	empty := slices.Insert(slices.Clone(addressOverTCP), deviceOf1, domainWithoutTransports, 0)
	for name, address := range map[string][]byte{
		"name": named, "paths and system device": paths, "device without transports": empty,
		"other transports": addressOverMemory,
	} {
		if err := checkAddress(address, addressOverTCP); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMalformedKeyIsRefused(t *testing.T) {
	if err := checkKey(keyOverMemory); err != nil {
		t.Error(err)
	}
	for length := range keyOverMemory {
		if err := checkKey(keyOverMemory[:length]); !errors.Is(err, ErrInvalid) {
			t.Errorf("the first %d bytes: %v", length, err)
		}
	}
	for name, at := range map[string]int{
		"more domains": 7, "memory of a device": keyDomains, "longer part": keyDomains + 2,
	} {
		key := slices.Clone(keyOverMemory)
		key[at] = 0xff
		if err := checkKey(key); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := checkKey(append(slices.Clone(keyOverMemory), make([]byte, MaxKey)...)); !errors.Is(err, ErrInvalid) {
		t.Errorf("too long: %v", err)
	}
}

// FuzzAddress: what is accepted has its end within the address, and only plausible numbers.
func FuzzAddress(f *testing.F) {
	f.Add(addressOverTCP)
	f.Add(addressOverMemory)
	f.Fuzz(func(t *testing.T, address []byte) {
		entries, err := parseAddress(address)
		if err != nil {
			return
		}
		size := 9
		for _, e := range entries {
			if size += 2 + 12 + transportAttributes + 1 + len(e.iface); !isTime(e.overhead) || !isTime(e.latency) ||
				math.IsNaN(float64(e.bandwidth)) || e.bandwidth <= 0 {
				t.Errorf("%+v", e)
			}
		}
		if size > len(address) {
			t.Errorf("%d bytes of transports in %d", size, len(address))
		}
		after, err := parseAddress(append(slices.Clone(address), 0xff))
		if err != nil || len(after) != len(entries) {
			t.Errorf("a byte after it counts: %v", err)
		}
	})
}

// FuzzKey: what follows a key that is accepted is not part of it.
func FuzzKey(f *testing.F) {
	f.Add(keyOverMemory)
	f.Add(make([]byte, keyDomains+1))
	f.Fuzz(func(t *testing.T, key []byte) {
		if checkKey(key) != nil || len(key) == MaxKey {
			return
		}
		if err := checkKey(append(slices.Clone(key), 0xff)); err != nil || key[keyDomains] != keyHost {
			t.Errorf("%x: %v", key, err)
		}
	})
}
