/** Vectors of chapter 01, sections 8 to 11: certificates, device states, profiles. */
import type { Network } from '../../src/index.ts';
import { canonicalBytes, type JsonObject } from '../../src/json/index.ts';
import {
  ann,
  ben,
  certificateOf,
  network,
  otherChain,
  otherRegistry,
  period,
  signedBy,
  start,
  tampered,
  VectorFile,
  without,
} from './fixture.ts';

export const day = 86_400;

/** Returns an unknown member that makes the signed object exactly `bytes` of Canonical JSON. */
export function padding(make: (zz: string) => JsonObject, bytes: number): string {
  return 'x'.repeat(bytes - canonicalBytes(make('')).length);
}

/** Faults that every typed and signed object must be refused for. */
export function commonFaults(
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
