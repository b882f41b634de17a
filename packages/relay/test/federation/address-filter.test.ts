import type { LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { describe, expect, test } from 'vitest';
import { AddressFilter } from '../../src/federation/address-filter.ts';

const strict = new AddressFilter({ allowPrivate: false });
const lenient = new AddressFilter({ allowPrivate: true });

describe('07 §B4: addresses a relay connects to', () => {
  test.each([
    '1.1.1.1',
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '126.255.255.255',
    '128.0.0.1',
    '172.15.255.255',
    '172.32.0.0',
    '223.255.255.255',
    '2606:4700:4700::1111',
    '2a00:1450:4001:81b::200e',
    // IPv4 in IPv6, mapped and by NAT64.
    '::ffff:1.1.1.1',
    '64:ff9b::101:101',
  ])('%s is public', (address) => {
    expect(strict.isAllowed(address)).toBe(true);
    expect(lenient.isAllowed(address)).toBe(true);
  });

  test.each([
    '127.0.0.1',
    '127.255.255.254',
    '10.0.0.1',
    '100.64.0.1',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.0.1',
    '192.0.2.1',
    '198.18.0.1',
    '::1',
    'fc00::1',
    'fd12:3456::1',
    '2001:db8::1',
    '2001:0:53aa:64c::1',
    '2002:7f00:1::1',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::ffff:10.0.0.1',
    '64:ff9b::7f00:1',
    '64:ff9b::a00:1',
  ])('%s is private: only with federation.allowPrivate', (address) => {
    expect(strict.isAllowed(address)).toBe(false);
    expect(lenient.isAllowed(address)).toBe(true);
  });

  test.each([
    '0.0.0.0',
    '0.1.2.3',
    '169.254.169.254',
    '169.254.0.1',
    '100.100.100.200',
    '168.63.129.16',
    '224.0.0.1',
    '239.255.255.255',
    '240.0.0.1',
    '255.255.255.255',
    '::',
    'fe80::1',
    'fd00:ec2::254',
    'ff02::1',
    '::ffff:169.254.169.254',
    '::ffff:0.0.0.0',
    '64:ff9b::a9fe:a9fe',
    'fe80::1%eth0',
    '::1%lo',
    'localhost',
    '127.1',
    '0x7f.0.0.1',
    '',
  ])('%j is never connected to', (address) => {
    expect(strict.isAllowed(address)).toBe(false);
    expect(lenient.isAllowed(address)).toBe(false);
  });
});

describe('names', () => {
  const found = async (filter: AddressFilter, host: string, all: boolean) => {
    const { promise, resolve, reject } = Promise.withResolvers<string | LookupAddress[]>();
    filter.lookup(host, { all }, (error, addresses) =>
      error ? reject(error) : resolve(addresses),
    );
    return await promise;
  };

  test('a name of this machine has no address for a relay of the public network', async () => {
    await expect(found(strict, 'localhost', true)).rejects.toMatchObject({
      name: 'AddressRefused',
    });
    await expect(found(strict, 'localhost', false)).rejects.toMatchObject({
      name: 'AddressRefused',
    });
    const expected = await lookup('localhost', { all: true });
    expect(await found(lenient, 'localhost', true)).toEqual(expected);
    expect(await found(lenient, 'localhost', false)).toBe(expected[0]?.address);
  });

  test('a name that does not exist keeps the error of DNS', async () => {
    await expect(found(lenient, 'relay.invalid', true)).rejects.toMatchObject({
      syscall: 'getaddrinfo',
    });
  });
});

describe('07 §A8: libp2p addresses', () => {
  test('an IP address is itself, if permitted', async () => {
    expect(await strict.resolve({ family: 'ip4', host: '1.1.1.1' })).toEqual(['1.1.1.1']);
    expect(await lenient.resolve({ family: 'ip6', host: '::1' })).toEqual(['::1']);
    await expect(strict.resolve({ family: 'ip4', host: '127.0.0.1' })).rejects.toMatchObject({
      name: 'AddressRefused',
    });
    await expect(strict.resolve({ family: 'ip6', host: '::ffff:127.0.0.1' })).rejects.toMatchObject(
      { name: 'AddressRefused' },
    );
  });

  test('a name has its permitted addresses of the family', async () => {
    expect(await lenient.resolve({ family: 'dns4', host: 'localhost' })).toEqual(['127.0.0.1']);
    const all = (await lookup('localhost', { all: true })).map(({ address }) => address);
    expect(await lenient.resolve({ family: 'dns', host: 'localhost' })).toEqual(all);
    await expect(strict.resolve({ family: 'dns', host: 'localhost' })).rejects.toMatchObject({
      name: 'AddressRefused',
    });
    await expect(lenient.resolve({ family: 'dnsaddr', host: 'localhost' })).rejects.toMatchObject({
      name: 'AddressRefused',
    });
  });
});
