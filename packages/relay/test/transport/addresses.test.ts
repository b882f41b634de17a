import type { IncomingMessage } from 'node:http';
import { addressKey } from '@posthouse/peer';
import { describe, expect, test } from 'vitest';
import { PublicAddresses } from '../../src/config/public-addresses.ts';
import { ClientAddresses } from '../../src/transport/client-addresses.ts';

describe('public addresses', () => {
  const addresses = new PublicAddresses(
    [
      'https://RELAY.example:443/svc/v1',
      'https://other.example:0/a/svc/v1',
      'https://root.example',
    ],
    ['wss://relay.example/svc/v1', 'wss://socket.example'],
  );
  addresses.setPort(8_443);

  test('02 §8: the origin of a request follows from its path', () => {
    expect(addresses.httpOrigin('/svc/v1')).toBe('https://relay.example');
    expect(addresses.httpOrigin('/a/svc/v1')).toBe('https://other.example:8443');
    expect(addresses.httpOrigin('')).toBe('https://root.example');
    expect(addresses.webSocketOrigin('/svc/v1')).toBe('https://relay.example');
    expect(addresses.webSocketOrigin('/')).toBe('https://socket.example');
    expect(addresses.webSocketOrigin('/nothing')).toBeUndefined();
  });

  test('port 0 becomes the port listened on, everything else stays as it is written', () => {
    expect(addresses.https).toEqual([
      'https://RELAY.example:443/svc/v1',
      'https://other.example:8443/a/svc/v1',
      'https://root.example',
    ]);
  });
});

describe('where a request comes from', () => {
  const clients = new ClientAddresses(['127.0.0.1', '10.0.0.0/8', '2001:db8::/32']);
  const from = (remoteAddress: string, forwarded?: string | string[]) =>
    clients.of({
      socket: { remoteAddress },
      headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
    } as unknown as IncomingMessage);

  test.each<[string, string, string | string[] | undefined, string]>([
    ['a peer is who it is', '192.0.2.1', undefined, '192.0.2.1'],
    ['a peer that is no proxy is not believed', '192.0.2.1', '198.51.100.1', '192.0.2.1'],
    ['a proxy is', '127.0.0.1', '198.51.100.1', '198.51.100.1'],
    ['a proxy in IPv6 clothes too', '::ffff:127.0.0.1', '198.51.100.1', '198.51.100.1'],
    [
      'what the client made up is behind the proxy',
      '10.1.1.1',
      '1.1.1.1, 198.51.100.1',
      '198.51.100.1',
    ],
    ['several proxies are followed', '127.0.0.1', '198.51.100.1, 10.2.2.2', '198.51.100.1'],
    ['in several headers', '127.0.0.1', ['198.51.100.1', '10.2.2.2'], '198.51.100.1'],
    ['nonsense ends the search', '127.0.0.1', '198.51.100.1, nonsense', '127.0.0.1'],
    ['nothing forwarded leaves the proxy', '127.0.0.1', undefined, '127.0.0.1'],
    ['an IPv6 proxy', '2001:db8::1', '198.51.100.1', '198.51.100.1'],
  ])('%s', (_, remote, forwarded, expected) => {
    expect(from(remote, forwarded)).toBe(expected);
  });

  test('IPv6 counts by its /64', () => {
    expect(addressKey('2001:db8:1:2:3:4:5:6')).toBe('2001:db8:1:2::/64');
    expect(addressKey('2001:0DB8:1:2::1')).toBe('2001:db8:1:2::/64');
    expect(addressKey('2001:db8:1:3::1')).toBe('2001:db8:1:3::/64');
    expect(addressKey('::1')).toBe('0:0:0:0::/64');
    expect(addressKey('fe80::1%eth0')).toBe('fe80:0:0:0::/64');
    expect(addressKey('::ffff:192.0.2.1')).toBe('192.0.2.1');
  });
});
