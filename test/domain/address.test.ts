import { describe, expect, it } from "vitest";
import { isInNetworks, kindOfAddress, parseNetwork } from "../../src/domain/address.ts";

describe("addresses", () => {
  it.each([
    "8.8.8.8",
    "1.1.1.1",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.1",
    "198.17.255.255",
    "223.255.255.255",
    "2606:4700:4700::1111",
    "2a00:1450:4001:81b::200e",
    "2001:4860:4860::8888",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
  ])("%s is public", (address) => expect(kindOfAddress(address)).toBe("public"));

  it.each(["127.0.0.1", "127.255.255.255", "::1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1"])(
    "%s is loopback",
    (address) => expect(kindOfAddress(address)).toBe("loopback"),
  );

  it.each([
    "0.0.0.0",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "100.127.255.255",
    "169.254.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.2.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "fe80::1",
    "febf::1",
    "fc00::1",
    "fd12:3456::1",
    "fec0::1",
    "ff02::1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::1",
    "3fff::1",
    "::ffff:10.0.0.1",
    "::ffff:a9fe:a9fe",
    "64:ff9b::10.0.0.1",
    "64:ff9b::a00:1",
    "::10.0.0.1",
  ])("%s is internal", (address) => expect(kindOfAddress(address)).toBe("internal"));

  it.each([
    "",
    "localhost",
    "1.2.3",
    "1.2.3.4.5",
    "256.1.1.1",
    "01.2.3.4",
    "1.2.3.4 ",
    "fe80::1%eth0",
    "1::2::3",
    "1:2:3:4:5:6:7",
    "1:2:3:4:5:6:7:8:9",
    "12345::",
    ":::",
    "g::1",
    "8.8.8.8::",
  ])("what is no address (%s) is not public", (text) =>
    expect(kindOfAddress(text)).toBe("internal"),
  );
});

describe("networks", () => {
  const within = (address: string, network: string) => {
    const parsed = parseNetwork(network);
    return parsed !== null && isInNetworks(address, [parsed]);
  };

  it("hold the addresses of their prefix, and no others", () => {
    expect(within("10.1.2.3", "10.1.0.0/16")).toBe(true);
    expect(within("10.2.0.0", "10.1.0.0/16")).toBe(false);
    expect(within("10.1.2.3", "10.1.2.3/32")).toBe(true);
    expect(within("10.1.2.2", "10.1.2.3/32")).toBe(false);
    expect(within("192.168.3.255", "192.168.0.0/22")).toBe(true);
    expect(within("192.168.4.0", "192.168.0.0/22")).toBe(false);
    expect(within("::ffff:10.1.2.3", "10.1.0.0/16")).toBe(true);
    expect(within("fd00::1", "fd00::/8")).toBe(true);
    expect(within("fe00::1", "fd00::/8")).toBe(false);
    expect(within("1.2.3.4", "0.0.0.0/0")).toBe(true);
    expect(within("::1", "0.0.0.0/0")).toBe(false);
  });

  it.each(["10.0.0.0", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8/8", "::/129", "name/8", "/8"])(
    "are not written as %s",
    (text) => expect(parseNetwork(text)).toBeNull(),
  );
});
