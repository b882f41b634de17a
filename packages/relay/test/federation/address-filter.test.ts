import { createSocket } from 'node:dgram';
import type { LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
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

/**
 * A server of names on loopback. It leaves questions about `slow…` without an answer, and those about the
 * IPv6 addresses of `half…`; names have one IPv4 address, `many…` nine and an IPv6 address.
 */
class NameServer implements AsyncDisposable {
  readonly #socket = createSocket('udp4');
  readonly #held: (() => void)[] = [];
  #isRefusing = false;

  static async start(): Promise<NameServer> {
    const server = new NameServer();
    server.#socket.bind(0, '127.0.0.1');
    await once(server.#socket, 'listening');
    server.#socket.on('message', (question, { port }) => {
      const answer = (code: number) => server.#socket.send(answerTo(question, code), port);
      const isHeld = question.includes('slow') && !server.#isRefusing;
      if (isHeld) server.#held.push(() => answer(3));
      else if (question.includes('half') && typeOf(question) === 28) return;
      else answer(question.includes('slow') ? 3 : 0);
    });
    return server;
  }

  get address(): string {
    return `127.0.0.1:${this.#socket.address().port}`;
  }

  get held(): number {
    return this.#held.length;
  }

  /** Answers that the names do not exist. */
  refuseHeld(): void {
    this.#isRefusing = true;
    for (const refuse of this.#held) refuse();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.close();
    await once(this.#socket, 'close');
  }
}

/** 1 for IPv4 addresses, 28 for IPv6 addresses. */
const typeOf = (question: Buffer) => question.readUInt16BE(question.indexOf(0, 12) + 1);

/** Makes the answer of DNS with a code; 0 is with the addresses that the name has. */
function answerTo(question: Buffer, code: number): Buffer {
  const end = question.indexOf(0, 12) + 5;
  const isMany = question.includes('many');
  const ofType: Record<number, number[][]> = {
    1: Array.from({ length: isMany ? 9 : 1 }, (_, index) => [192, 88, 98, 1 + index]),
    28: isMany ? [[0x26, ...Array<number>(14).fill(0), 1]] : [],
  };
  const addresses = code === 0 ? (ofType[typeOf(question)] ?? []) : [];
  const head = Buffer.from([...question.subarray(0, 2), 0x81, 0x80 | code]);
  const counts = Buffer.from([0, 1, 0, addresses.length, 0, 0, 0, 0]);
  const records = addresses.map((address) =>
    Buffer.from([0xc0, 12, 0, typeOf(question), 0, 1, 0, 0, 0, 1, 0, address.length, ...address]),
  );
  return Buffer.concat([head, counts, question.subarray(12, end), ...records]);
}

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

  test('names whose servers do not answer keep no other name waiting', async () => {
    await using names = await NameServer.start();
    const filter = new AddressFilter({ allowPrivate: false, servers: [names.address] });
    const ends = Array.from({ length: 16 }, (_, index) =>
      found(filter, `slow${index}.example`, true).catch((error: unknown) => error),
    );
    expect(await found(filter, 'good.example', false)).toBe('192.88.98.1');
    expect(await filter.resolve({ family: 'dns', host: 'good.example' })).toEqual(['192.88.98.1']);
    await expect(filter.resolve({ family: 'dns6', host: 'good.example' })).rejects.toMatchObject({
      code: 'ENODATA',
    });
    expect(names.held).toBeGreaterThan(0);
    names.refuseHeld();
    for (const error of await Promise.all(ends)) expect(error).toHaveProperty('syscall', 'queryA');
  });

  test('of a name with many IPv4 addresses an IPv6 address is used, too', async () => {
    await using names = await NameServer.start();
    const filter = new AddressFilter({ allowPrivate: false, servers: [names.address] });
    const addresses = await filter.resolve({ family: 'dns', host: 'many.example' });
    expect(addresses).toHaveLength(8);
    expect(addresses.slice(0, 3)).toEqual(['192.88.98.1', '2600::1', '192.88.98.2']);
  });

  test('IPv4 addresses do not wait for an answer about IPv6 addresses that does not come', async () => {
    await using names = await NameServer.start();
    const filter = new AddressFilter({ allowPrivate: false, servers: [names.address] });
    expect(await filter.resolve({ family: 'dns', host: 'half.example' })).toEqual(['192.88.98.1']);
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
