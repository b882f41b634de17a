/** Vectors of chapter 01, sections 8 to 13 and 17, and of chapter 02, section 9. */
import {
  canonicalBytes,
  deriveDeviceId,
  deriveRelayId,
  encodeBase64url,
  type JsonObject,
  type Network,
  peerIdOf,
} from '../../src/index.ts';
import {
  ann,
  ben,
  certificateOf,
  network,
  otherChain,
  otherRegistry,
  otherRelayKey,
  period,
  relayKey,
  signedBy,
  start,
  tampered,
  VectorFile,
  without,
} from './kit.ts';

const day = 86_400;

/** An unknown member that makes the signed object exactly `bytes` of Canonical JSON. */
function padding(make: (zz: string) => JsonObject, bytes: number): string {
  return 'x'.repeat(bytes - canonicalBytes(make('')).length);
}

/** Faults that every typed and signed object must be refused for. */
function commonFaults(
  file: VectorFile,
  what: {
    readonly operation: string;
    readonly input: (object: JsonObject) => JsonObject;
    readonly object: JsonObject;
    readonly signatures: readonly string[];
    /** A member with a text, to be left out, set to null and changed. */
    readonly member: string;
  },
): void {
  const { operation, input, object, signatures, member } = what;
  const bad = (name: string, changed: JsonObject, error = 'bad_request') =>
    file.invalid(name, operation, input(changed), { error });
  bad('K2: $context on the wire', { ...object, $context: network.context });
  bad('K2: $context null', { ...object, $context: null });
  bad('Y1: a successor type', { ...object, $type: `${String(object.$type)}.v2` });
  bad('Y1: another case', { ...object, $type: String(object.$type).toUpperCase() });
  bad('Y7: no type', without(object, '$type'));
  bad('Y7: type is a number', { ...object, $type: 1 });
  bad(`${member} missing`, without(object, member));
  bad(`${member} null`, { ...object, [member]: null });
  bad(`${member} is a number`, { ...object, [member]: 1 });
  bad('J9: null in an unknown member', { ...object, zz: [{ a: null }] });
  for (const name of signatures) {
    const signature = String(object[name]);
    bad(`${name} tampered`, { ...object, [name]: tampered(signature) }, 'invalid_signature');
    bad(`${name} missing`, without(object, name));
    bad(`${name} short`, { ...object, [name]: signature.slice(1) });
    bad(`${name} padded`, { ...object, [name]: `${signature}==` });
    bad(`${name} with pad bits`, { ...object, [name]: `${signature.slice(0, -1)}B` });
  }
  bad('an unknown member added after signing', { ...object, zz: 1 }, 'invalid_signature');
  const on = (other: Network, error: string) => ({ on: other, error });
  file.invalid('N4: on another chain', operation, input(object), on(otherChain, 'bad_request'));
  const moved = on(otherRegistry, 'invalid_signature');
  file.invalid('N4: on another registry', operation, input(object), moved);
}

export function certificateVectors(): VectorFile {
  const file = new VectorFile('Device certificates', '01 §8, §9');
  const operation = 'certificate.verify';
  const valid = (name: string, certificate: JsonObject) =>
    file.valid(name, operation, { certificate });
  const make = (changes: JsonObject = {}) => certificateOf(ann, ann.device, changes);
  const certificate = make();
  valid('the certificate of 01 §8', certificate);
  valid('D2: a renewal keeps the device ID', make({ not_before: start + day }));
  valid('another device key, another ID', certificateOf(ann, ann.second));
  valid('U1: unknown members are signed', make({ zz: { list: [1, 'é'], empty: [] } }));
  valid('a period of one second', make({ expires_at: start + 1 }));
  valid('times before 1970', make({ not_before: -10, expires_at: -5 }));
  const exact = padding((zz) => make({ zz }), 4_096);
  valid('4,096 bytes', make({ zz: exact }));
  const bad = (name: string, changed: JsonObject, error = 'bad_request') =>
    file.invalid(name, operation, { certificate: changed }, { error });
  bad('4,097 bytes', make({ zz: `${exact}x` }), 'request_too_large');
  bad('a period of 720 days and a second', make({ expires_at: start + period + 1 }));
  bad('a period of nothing', make({ expires_at: start }));
  bad('a period that runs backwards', make({ expires_at: start - 1 }));
  bad('expires_at is a text', make({ expires_at: String(start + period) }));
  bad('the account of another key', make({ account: ben.signer.account }));
  bad('an account of another chain', make({ account: otherChainAccount() }));
  bad('an encryption key of 33 bytes', make({ encryption_public_key: ben.signer.publicKey }));
  const swapped = { ...certificate, device_signature: make({ zz: 1 }).device_signature };
  bad('a device signature of other content', swapped, 'invalid_signature');
  const foreign = signedBy(ben.signer, without(certificate, 'account_signature'), signature);
  bad('signed by another account', foreign, 'invalid_signature');
  const input = (object: JsonObject) => ({ certificate: object });
  const signatures = ['device_signature', signature];
  commonFaults(file, {
    operation,
    input,
    object: certificate,
    signatures,
    member: 'signing_public_key',
  });
  return file;
}

const signature = 'account_signature';

function otherChainAccount(): string {
  return ann.signer.account.replace(network.magic, otherChain.magic);
}

export function deviceStateVectors(): VectorFile {
  const file = new VectorFile('Account device states', '01 §10');
  const operation = 'device_state.verify';
  const make = (changes: JsonObject = {}) =>
    signedBy(
      ann.signer,
      {
        $type: network.type('account.device.state'),
        account: ann.signer.account,
        account_public_key: ann.signer.publicKey,
        revision: 1_735_689_600_123,
        certificates: [certificateOf(ann, ann.device)],
        ...changes,
      },
      signature,
    );
  const valid = (name: string, changes?: JsonObject) =>
    file.valid(name, operation, { state: make(changes) });
  valid('the state of 01 §10');
  valid('A4: no device', { certificates: [] });
  valid('revision 0', { revision: 0 });
  valid('the largest revision', { revision: Number.MAX_SAFE_INTEGER });
  valid('A5: an expired device', {
    certificates: [certificateOf(ann, ann.device, { not_before: 0, expires_at: 1 })],
  });
  valid('two devices', {
    certificates: [certificateOf(ann, ann.second), certificateOf(ann, ann.device)],
  });
  valid('U1: unknown members here and in a certificate', {
    certificates: [certificateOf(ann, ann.device, { zz: [[]] })],
    zz: 'é',
  });
  const bad = (name: string, changes: JsonObject, error = 'bad_request') =>
    file.invalid(name, operation, { state: make(changes) }, { error });
  const certificate = certificateOf(ann, ann.device);
  bad('a negative revision', { revision: -1 });
  bad('certificates missing', { certificates: null });
  bad('A3: a certificate of another account', { certificates: [certificateOf(ben, ben.device)] });
  bad('A3: one device twice', {
    certificates: [certificate, certificateOf(ann, ann.device, { not_before: start + day })],
  });
  bad('nine certificates', { certificates: Array.from({ length: 9 }, () => certificate) });
  bad('K2: $context in a certificate', {
    certificates: [{ ...certificate, $context: network.context }],
  });
  bad('Y4: a certificate of another type', {
    certificates: [{ ...certificate, $type: network.type('x') }],
  });
  const spoiled = { ...certificate, device_signature: tampered(certificate.device_signature) };
  bad('A3: a certificate that does not verify', { certificates: [spoiled] }, 'invalid_signature');
  bad(
    'a certificate over 4,096 bytes',
    {
      certificates: [certificateOf(ann, ann.device, { zz: 'x'.repeat(4_096) })],
    },
    'request_too_large',
  );
  bad('the account of another key', { account: ben.signer.account, certificates: [] });
  commonFaults(file, {
    operation,
    input: (state) => ({ state }),
    object: make({ certificates: [] }),
    signatures: [signature],
    member: 'account_public_key',
  });
  return file;
}

export function profileVectors(): VectorFile {
  const file = new VectorFile('Profiles', '01 §11');
  const operation = 'profile.verify';
  const certificate = certificateOf(ann, ann.device);
  const make = (changes: JsonObject = {}) =>
    signedBy(
      ann.device,
      {
        $type: network.type('profile'),
        account: ann.signer.account,
        nickname: 'Ann é😀',
        public_discovery: true,
        updated_at: 1_735_689_700,
        ...changes,
      },
      'device_signature',
    );
  const input = (profile: JsonObject) => ({ profile, certificate });
  const avatar = {
    uri: 'https://example.com/a.png',
    hash: `sha256:${'A'.repeat(43)}`,
    content_type: 'image/png',
    size: 68,
  };
  for (const [name, changes] of [
    ['the profile of 01 §11', {}],
    ['T2: empty texts', { nickname: '', bio: '' }],
    ['a nickname of 256 bytes', { nickname: 'é'.repeat(128) }],
    ['a bio of 2,048 bytes', { bio: `${'€'.repeat(682)}ab` }],
    ['an avatar', { avatar }],
    ['U1: unknown members', { zz: { a: [true] } }],
  ] as const) {
    file.valid(name, operation, input(make(changes)));
  }
  file.valid('optional members left out', operation, input(withoutSigned(make, 'nickname')));
  const exact = padding((zz) => make({ zz }), 8_192);
  file.valid('8,192 bytes', operation, input(make({ zz: exact })));
  const over = { error: 'request_too_large' };
  file.invalid('8,193 bytes', operation, input(make({ zz: `${exact}x` })), over);
  for (const [name, changes] of [
    ['a nickname of 257 bytes', { nickname: `${'é'.repeat(128)}a` }],
    ['a nickname of white space', { nickname: ' \u3000' }],
    ['a bio of 2,049 bytes', { bio: 'a'.repeat(2_049) }],
    ['a bio of white space', { bio: '\u2028' }],
    ['public_discovery is a text', { public_discovery: 'true' }],
    ['updated_at is a fraction as text', { updated_at: '1.5' }],
    ['an avatar that is no image', { avatar: { ...avatar, content_type: 'text/plain' } }],
    ['an avatar over http', { avatar: { ...avatar, uri: 'http://example.com/a.png' } }],
    ['an avatar of negative size', { avatar: { ...avatar, size: -1 } }],
    ['an avatar of null', { avatar: null }],
    ['an account with a wrong checksum', { account: `${ann.signer.account.slice(0, -1)}q` }],
    ['another account than the certificate', { account: ben.signer.account }],
  ] as const) {
    file.invalid(name, operation, input(make(changes)));
  }
  const foreign = { profile: make(), certificate: certificateOf(ann, ann.second) };
  file.invalid('signed by another device', operation, foreign, { error: 'invalid_signature' });
  const signatures = ['device_signature'];
  commonFaults(file, { operation, input, object: make(), signatures, member: 'account' });
  return file;
}

function withoutSigned(make: (changes: JsonObject) => JsonObject, member: string): JsonObject {
  const rest = without(make({}), member, 'device_signature');
  return signedBy(ann.device, rest, 'device_signature');
}

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
