import { describe, expect, test } from 'vitest';
import {
  checkHttpsEndpoint,
  checkWssEndpoint,
  classifyEndpoint,
  parsePeerId,
} from '../../src/index.ts';
import { codeOf } from './appendix.ts';

const peer = '12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA';
/** Kind of an item, or the code it is refused with. */
const kindOf = (text: string) => {
  let kind: string | undefined;
  const code = codeOf(() => {
    kind = classifyEndpoint(text).kind;
  });
  return code ?? kind;
};

describe('01 §12, §13.2: HTTPS and WSS addresses', () => {
  test.each([
    'relay.example.com/svc/v1',
    'relay.example.com',
    'relay.example.com/',
    'relay.example.com:8443/a/svc/v1',
    'relay.example.com:08443/svc/v1',
    'RELAY.example.com/svc/v1',
    'relay.example.com./svc/v1',
    'bücher.example/svc/v1',
    'xn--bcher-kva.example/svc/v1',
    'relay_1.example/svc/v1',
    'localhost:8443',
    `${'a'.repeat(63)}.example/svc/v1`,
    `${'a.'.repeat(126)}a./svc/v1`,
    '192.0.2.1:443/svc/v1',
    '[2001:db8::1]:8443/svc/v1',
    'relay.example.com/~a/@b/%20c/',
  ])('EP3: %j after the scheme is an address', (rest) => {
    expect(codeOf(() => checkHttpsEndpoint(`https://${rest}`))).toBeUndefined();
    expect(codeOf(() => checkWssEndpoint(`wss://${rest}`))).toBeUndefined();
    expect(kindOf(`https://${rest}`)).toBe('https');
    expect(kindOf(`wss://${rest}`)).toBe('wss');
  });

  test.each([
    ['', 'no host'],
    ['/svc/v1', 'no host'],
    [':443/svc/v1', 'no host'],
    ['relay.example.com/svc/v1?', 'an empty query'],
    ['relay.example.com/svc/v1?a=1', 'a query'],
    ['relay.example.com?a', 'a query'],
    ['relay.example.com/svc/v1#', 'an empty fragment'],
    ['relay.example.com/svc/v1#a', 'a fragment'],
    ['user@relay.example.com/', 'userinfo'],
    ['user:word@relay.example.com/', 'userinfo'],
    ['@relay.example.com/', 'empty userinfo'],
    ['relay.example.com\\svc', 'a backslash'],
    ['relay.example.com/s vc', 'white space'],
    ['relay.example.com/svc ', 'white space at the end'],
    [' relay.example.com/', 'white space in front'],
    ['relay.example.com/\tsvc', 'a tab, which URL parsers drop'],
    ['relay.example.com/svc\n', 'a line feed, which URL parsers drop'],
    ['relay.example.com/\u0085', 'U+0085'],
    ['relay.example.com/\u00a0', 'U+00A0'],
    ['relay.example.com/\u3000', 'U+3000'],
    ['relay.example.com/\u0000', 'a control character'],
    ['rel%61y.example.com/', 'a percent-encoded host'],
    ['relay.example.com:65536/', 'a port out of range'],
    ['relay.example.com:x/', 'a port that is no number'],
    ['[2001:db8::1/', 'an open bracket'],
    ['[2001:db8::g]/', 'no IPv6 address'],
    ['256.0.0.1/', 'no IPv4 address'],
    ['0x7f.1/', 'an IPv4 address only after repair'],
    ['127.1/', 'an IPv4 address only after repair'],
    ['a<b.example/', 'a host that cannot be'],
    ['relay..example/', 'an empty label'],
    ['.example/', 'an empty label in front'],
    ['./', 'the root of all names'],
    ['\u3002/', 'the root of all names after mapping'],
    ['*.example/', 'a wildcard'],
    ['a,b.example/', 'two hosts'],
    [`${'a'.repeat(64)}.example/`, 'a label over 63 characters'],
    [`${'a.'.repeat(126)}aa/`, 'a name over 253 characters'],
  ])('EP3, EP5: %j after the scheme is refused: %s', (rest) => {
    expect(codeOf(() => checkHttpsEndpoint(`https://${rest}`))).toBe('bad_request');
    expect(codeOf(() => checkWssEndpoint(`wss://${rest}`))).toBe('bad_request');
    expect(kindOf(`https://${rest}`)).toBe('bad_request');
    expect(kindOf(`wss://${rest}`)).toBe('bad_request');
  });

  test('at most 512 bytes of UTF-8', () => {
    const path = (bytes: number) => 'a'.repeat(bytes - 'https://relay.example/'.length);
    for (const [bytes, code] of [
      [511, undefined],
      [512, undefined],
      [513, 'bad_request'],
    ] as const) {
      const text = `https://relay.example/${path(bytes)}`;
      expect(codeOf(() => checkHttpsEndpoint(text))).toBe(code);
    }
    const wide = `https://relay.example/${path(511)}é`;
    expect(wide).toHaveLength(512);
    expect(codeOf(() => checkHttpsEndpoint(wide))).toBe('bad_request');
  });

  test.each([
    'http://relay.example',
    'HTTPS://relay.example',
    'Https://relay.example',
    'https:/relay.example',
    'https:relay.example',
    'https:\\\\relay.example',
    ' https://relay.example',
    'WSS://relay.example',
    'wss:relay.example',
    '//relay.example',
    'relay.example',
  ])('%j begins with neither exact prefix', (text) => {
    expect(codeOf(() => checkHttpsEndpoint(text))).toBe('bad_request');
    expect(codeOf(() => checkWssEndpoint(text))).toBe('bad_request');
  });

  test.each(['HTTPS://relay.example', 'https:relay.example', 'Wss://relay.example', ' wss://a'])(
    'EP4: %j is a malformed address, not one of an unknown transport',
    (text) => {
      expect(kindOf(text)).toBe('bad_request');
    },
  );
});

describe('01 §13.2: libp2p TCP addresses', () => {
  test.each([
    ['dns4', 'relay.example.com'],
    ['dns6', 'relay.example.com'],
    ['dns', 'relay.example.com'],
    ['dnsaddr', 'relay.example.com'],
    ['ip4', '192.0.2.1'],
    ['ip6', '2001:db8::1'],
    ['ip6', '::ffff:192.0.2.1'],
  ])('/%s/%s with a port and a Peer ID is one', (family, host) => {
    expect(classifyEndpoint(`/${family}/${host}/tcp/4201/p2p/${peer}`)).toEqual({
      kind: 'libp2p',
      address: { family, host, port: 4201, peerId: parsePeerId(peer) },
    });
  });

  test.each([
    ['1', 'libp2p'],
    ['65535', 'libp2p'],
    ['0', 'bad_request'],
    ['65536', 'bad_request'],
    ['04201', 'bad_request'],
    ['-1', 'bad_request'],
    ['x', 'bad_request'],
    ['', 'bad_request'],
  ])('port %j: %s', (port, kind) => {
    expect(kindOf(`/dns4/relay.example.com/tcp/${port}/p2p/${peer}`)).toBe(kind);
  });

  test.each([
    '/dns4/relay.example.com/tcp/4201',
    '/dns4/relay.example.com/tcp/4201/',
    '/dns4/relay.example.com/tcp/4201/p2p',
    '/dns4/relay.example.com/tcp/4201/p2p/',
    `/dns4/relay.example.com/tcp/4201/p2p/${peer.slice(0, -1)}`,
    `/dns4/relay.example.com/tcp/4201/p2p/${peer}/`,
    `/dns4/relay.example.com/tcp/4201/p2p/${peer}/tcp/1`,
    `/dns4/tcp/4201/p2p/${peer}`,
    `/dns4//tcp/4201/p2p/${peer}`,
    `/dns4/a b/tcp/4201/p2p/${peer}`,
    `/dns4/a..b/tcp/4201/p2p/${peer}`,
    `/dns4/127.1/tcp/4201/p2p/${peer}`,
    `/dns4/a@b/tcp/4201/p2p/${peer}`,
    `/dns4/a?b/tcp/4201/p2p/${peer}`,
    `/ip4/256.0.0.1/tcp/4201/p2p/${peer}`,
    `/ip4/192.0.2/tcp/4201/p2p/${peer}`,
    `/ip4/192.0.2.01/tcp/4201/p2p/${peer}`,
    `/ip6/192.0.2.1/tcp/4201/p2p/${peer}`,
    `/ip6/2001:db8::g/tcp/4201/p2p/${peer}`,
    `/host/relay.example.com/tcp/4201/p2p/${peer}`,
    `dns4/relay.example.com/tcp/4201/p2p/${peer}`,
    ` /dns4/relay.example.com/tcp/4201/p2p/${peer}`,
    `/dns4/relay.example.com/tcp/`,
    `/dns4/relay.example.com/tcp`,
  ])('EP4: %j is malformed', (text) => {
    expect(kindOf(text)).toBe('bad_request');
  });

  test.each([
    `/dns4/relay.example.com/udp/4201/quic-v1/p2p/${peer}`,
    `/dns4/relay.example.com/tcp/443/wss/p2p/${peer}`,
    `/dns4/relay.example.com/tcp/443/tls/ws/p2p/${peer}`,
    `/dns4/relay.example.com/tcp/4201/p2p/${peer}/p2p-circuit/p2p/${peer}`,
    'http://relay.example.com/svc/v1',
    'quic://relay.example.com',
    'onion:abc',
    '/unix/tmp/socket',
    'relay.example.com',
    'x',
  ])('EP6: %j is of another transport and stays where it is', (text) => {
    expect(kindOf(text)).toBe('other');
  });
});
