/** Vectors of chapter 01, sections 12, 13 and 17, and of chapter 02, section 9. */
import { deriveDeviceId, deriveRelayId, encodeBase64url, peerIdOf } from '../../src/index.ts';
import type { JsonObject } from '../../src/json/index.ts';
import {
  ann,
  ben,
  certificateOf,
  network,
  otherRegistry,
  otherRelayKey,
  relayKey,
  signedBy,
  start,
  tampered,
  VectorFile,
  without,
} from './fixture.ts';
import { commonFaults, day, padding } from './identity.ts';

const signature = 'account_signature';

export function routeVectors(): VectorFile {
  const file = new VectorFile('Account routes', '01 §17.1; 03 §3.4');
  const draft = (changes: JsonObject = {}) =>
    signedBy(
      ann.signer,
      {
        $type: network.type('account.route'),
        account: ann.signer.account,
        account_public_key: ann.signer.publicKey,
        revision: 1_735_689_600_123,
        relay_id: deriveRelayId(network, relayKey.publicKey),
        updated_at: start,
        expires_at: start + 365 * day,
        ...changes,
      },
      signature,
    );
  const final = (changes: JsonObject = {}) => signedBy(relayKey, draft(changes), 'relay_signature');
  const input = (route: JsonObject) => ({ route, relay_public_key: relayKey.publicKey });
  file.valid('a draft', 'route_draft.verify', { route: draft() });
  file.invalid('a draft with the signature of a relay', 'route_draft.verify', { route: final() });
  file.valid('a route', 'route.verify', input(final()));
  file.valid('U1: unknown members', 'route.verify', input(final({ zz: [0] })));
  const longest = { expires_at: start + 315_360_000 };
  file.valid('3,650 days', 'route.verify', input(final(longest)));
  const exact = padding((zz) => final({ zz }), 4_096);
  file.valid('4,096 bytes', 'route.verify', input(final({ zz: exact })));
  const over = { error: 'request_too_large' };
  file.invalid('4,097 bytes', 'route.verify', input(final({ zz: `${exact}x` })), over);
  for (const [name, changes] of [
    ['3,650 days and a second', { expires_at: start + 315_360_001 }],
    ['no period', { expires_at: start }],
    ['a negative revision', { revision: -1 }],
    ['a relay ID in upper case', { relay_id: `0x${'AB'.repeat(20)}` }],
    ['another relay than the key', { relay_id: deriveRelayId(network, otherRelayKey.publicKey) }],
    ['the account of another key', { account: ben.signer.account }],
  ] as const) {
    file.invalid(name, 'route.verify', input(final(changes)));
  }
  const foreign = signedBy(otherRelayKey, draft(), 'relay_signature');
  const invalid = { error: 'invalid_signature' };
  file.invalid('co-signed by another relay', 'route.verify', input(foreign), invalid);
  commonFaults(file, {
    operation: 'route.verify',
    input,
    object: final(),
    signatures: [signature, 'relay_signature'],
    member: 'relay_id',
  });
  return file;
}

export function descriptorVectors(): VectorFile {
  const file = new VectorFile('Relay descriptors', '01 §12, §13');
  const operation = 'descriptor.verify';
  const relay_id = deriveRelayId(network, relayKey.publicKey);
  const peer = '12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA';
  const other = peerIdOf(ann.device.signingSeed);
  const https = 'https://relay.example.com/svc/v1';
  const tcp = `/dns4/relay.example.com/tcp/4201/p2p/${peer}`;
  const make = (changes: JsonObject = {}) =>
    signedBy(
      relayKey,
      {
        $type: network.type('relay.descriptor'),
        relay_id,
        public_key: relayKey.publicKey,
        endpoints: [https, 'wss://relay.example.com/svc/v1', tcp],
        capabilities: ['channel.host.v1', 'group.host.v1'],
        expires_at: 1_767_225_600,
        ...changes,
      },
      'relay_signature',
    );
  const entry = { relay_id, endpoint: https, status: 'active', updated_at: 1_735_689_600_000 };
  const input = (descriptor: JsonObject) => ({ descriptor, entry, now: start });
  const endpoints = (...items: string[]) => ({ endpoints: items });
  for (const [name, changes] of [
    ['the descriptor of 01 §13', {}],
    ['no optional module', { capabilities: [] }],
    ['64 capabilities', { capabilities: Array.from({ length: 64 }, (_, index) => `c${index}`) }],
    ['a capability of 128 bytes', { capabilities: ['é'.repeat(64)] }],
    ['EP1: without WebSocket', endpoints(https, tcp)],
    ['EP6: unknown transports', endpoints('/dns4/x/udp/1/quic-v1', 'gopher://x', https, tcp)],
    ['several addresses of one Peer ID', endpoints(https, tcp, `/ip4/192.0.2.1/tcp/1/p2p/${peer}`)],
    ['U1: unknown members', { zz: { a: 1 } }],
  ] as const) {
    file.valid(name, operation, input(make(changes)));
  }
  for (const [name, changes] of [
    ['EP1: no HTTPS address', endpoints(tcp)],
    ['EP1: no libp2p address', endpoints(https)],
    ['no address', endpoints()],
    ['EP2: an empty item', endpoints('', https, tcp)],
    ['EP2: an address twice', endpoints(https, https, tcp)],
    ['EP3: a query', endpoints(`${https}?a=1`, tcp)],
    ['EP3: an empty query', endpoints(`${https}?`, tcp)],
    ['EP3: an empty fragment', endpoints(`${https}#`, tcp)],
    ['EP3: user information', endpoints('https://a@relay.example.com', tcp)],
    ['EP3: a backslash', endpoints('https:\\\\relay.example.com', tcp)],
    ['EP3: white space', endpoints('https://relay.example.com/a b', tcp)],
    ['EP3: no host', endpoints('https:///svc/v1', tcp)],
    ['EP3: over 512 bytes', endpoints(`https://relay.example.com/${'a'.repeat(487)}`, tcp)],
    ['EP4: a malformed wss address', endpoints(https, 'wss://relay.example.com/#', tcp)],
    ['EP4: a scheme in upper case', endpoints('HTTPS://relay.example.com', https, tcp)],
    ['EP4: a malformed Peer ID', endpoints(https, tcp, '/ip4/192.0.2.1/tcp/1/p2p/0OIl')],
    ['13.3: two Peer IDs', endpoints(https, tcp, `/ip4/192.0.2.1/tcp/1/p2p/${other}`)],
    ['65 capabilities', { capabilities: Array.from({ length: 65 }, (_, index) => `c${index}`) }],
    ['a capability of 129 bytes', { capabilities: [`${'é'.repeat(64)}a`] }],
    ['an empty capability', { capabilities: [''] }],
    ['a capability twice', { capabilities: ['a', 'a'] }],
    ['the relay ID of another key', { relay_id: deriveRelayId(network, otherRelayKey.publicKey) }],
  ] as const) {
    file.invalid(name, operation, input(make(changes)));
  }
  const standing = (changes: JsonObject) => ({ descriptor: make(), entry, now: start, ...changes });
  file.valid('a second before it expires', operation, standing({ now: 1_767_225_599 }));
  const expired = standing({ now: 1_767_225_600 });
  file.invalid('13.3: expired', operation, expired, { error: 'stale_state' });
  for (const status of ['disabled', 'suspended']) {
    const given = standing({ entry: { ...entry, status } });
    file.invalid(`13.3: ${status} in the registry`, operation, given, { error: 'forbidden' });
  }
  const moved = { ...entry, relay_id: `0x${'00'.repeat(20)}` };
  file.invalid('13.4: another relay than asked for', operation, standing({ entry: moved }));
  const object = make();
  const bad = (name: string, changed: JsonObject, error = 'bad_request') =>
    file.invalid(name, operation, input(changed), { error });
  bad('K2: $context on the wire', { ...object, $context: network.context });
  bad('Y1: a successor type', { ...object, $type: network.type('relay.descriptor.v2') });
  bad('public_key missing', without(object, 'public_key'));
  bad('J9: null', { ...object, capabilities: null });
  const tamperedObject = { ...object, relay_signature: tampered(object.relay_signature) };
  bad('relay_signature tampered', tamperedObject, 'invalid_signature');
  const reordered = { ...object, endpoints: [...object.endpoints].reverse() };
  bad('EP2: addresses in another order', reordered, 'invalid_signature');
  const on = { on: otherRegistry, error: 'invalid_signature' };
  file.invalid('N4: on another registry', operation, input(object), on);
  return file;
}

export function authVectors(): VectorFile {
  const file = new VectorFile('Signing inputs of authentication', '02 §9.3, §9.4');
  const certificate = certificateOf(ann, ann.device);
  const facts = {
    relay_id: deriveRelayId(network, relayKey.publicKey),
    origin: 'https://relay.example.com',
    account: ann.signer.account,
    nonce: encodeBase64url(Uint8Array.from({ length: 32 }, (_, index) => index)),
  };
  const device_id = deriveDeviceId(network, certificate);
  const timestamp = start + 5;
  file.valid('device', 'auth.device_input', { ...facts, device_id, timestamp });
  const more = { ...facts, device_id, timestamp, zz: 1, $context: 'ignored' };
  file.valid('device: members beyond the six do not enter', 'auth.device_input', more);
  const account_public_key = ann.signer.publicKey;
  file.valid('account', 'auth.account_input', { ...facts, account_public_key });
  file.valid(
    'account: on another registry',
    'auth.account_input',
    {
      ...facts,
      account_public_key,
    },
    otherRegistry,
  );
  return file;
}
