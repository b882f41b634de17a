/** Vectors of chapter 01, sections 4, 5, 7 and 12: binding, keys, signatures and IDs. */
import { noblePrimitives } from '../../src/crypto/index.ts';
import { encodeBase64url, fromHex, hex, Network } from '../../src/index.ts';
import {
  ann,
  ben,
  context,
  counting,
  network,
  otherRegistry,
  relayKey,
  VectorFile,
} from './fixture.ts';
import { hexOf } from './operations.ts';

const registry = '0x0123456789abcdef0123456789abcdef01234567';

export function networkVectors(): VectorFile {
  const file = new VectorFile('Network context and network-bound inputs', '01 §0, §1, §4');
  for (const magic of ['0', '1', '860833102', '4294967295']) {
    file.valid(`magic ${magic}`, 'network.context', { text: `neo:${magic}:${registry}` });
  }
  for (const [name, text] of [
    ['N1: magic out of range', `neo:4294967296:${registry}`],
    ['N1: ten nines', `neo:9999999999:${registry}`],
    ['N1: leading zero', `neo:01:${registry}`],
    ['N1: two zeros', `neo:00:${registry}`],
    ['N1: plus', `neo:+1:${registry}`],
    ['N1: minus', `neo:-1:${registry}`],
    ['N1: no magic', `neo::${registry}`],
    ['N1: full-width digit', `neo:１:${registry}`],
    ['N2: upper case chain', `NEO:1:${registry}`],
    ['N1: another chain', `eip155:1:${registry}`],
    ['N2: upper case digits', `neo:1:0x${registry.slice(2).toUpperCase()}`],
    ['N2: upper case 0X', `neo:1:0X${registry.slice(2)}`],
    ['N1: short', `neo:1:${registry.slice(0, -1)}`],
    ['N1: long', `neo:1:${registry}0`],
    ['N2: leading space', ` neo:1:${registry}`],
    ['N1: trailing line feed', `neo:1:${registry}\n`],
    ['N1: a fourth part', `neo:1:${registry}:`],
    ['N1: empty', ''],
  ] as const) {
    file.invalid(name, 'network.context', { text }, { error: 'invalid' });
  }
  const object = {
    $type: network.type('example'),
    z: [{ signature: 'kept' }],
    signature: 'left out',
    a: { $context: 'inside a value that is no protocol object', signature: 'kept' },
    ä: null,
  };
  file.valid('hash input', 'network.bind', { object });
  file.valid('signature input: left out at the root only', 'network.bind', {
    object,
    omit: ['signature'],
  });
  file.valid('another registry', 'network.bind', { object }, otherRegistry);
  for (const value of [context, '', null]) {
    const wire = { ...object, $context: value };
    const name = `K2: $context on the wire: ${JSON.stringify(value)}`;
    file.invalid(name, 'network.bind', { object: wire });
  }
  for (const label of ['keybox-salt/v1', 'group-epoch-salt/v1', 'group-message-salt/v1']) {
    file.valid(`names and salt ${label}`, 'network.names', { type: 'profile', salt: label });
  }
  return file;
}

export function accountVectors(): VectorFile {
  const file = new VectorFile('Accounts, relay IDs and origins', '01 §7, §12; 02 §8');
  const one = encodeBase64url(noblePrimitives.p256.publicKey(new Uint8Array(32).fill(1)));
  for (const [name, public_key] of [
    ['the check value of 01 §7', one],
    ['account of 01 appendix A', ann.signer.publicKey],
    ['relay of 01 appendix A', relayKey.publicKey],
    ['another', ben.signer.publicKey],
  ] as const) {
    file.valid(`derive: ${name}`, 'account.derive', { public_key });
  }
  file.invalid('derive: a key of 32 bytes', 'account.derive', {
    public_key: encodeBase64url(counting(2)),
  });
  const { account } = ann.signer;
  file.valid('account', 'account.check', { account });
  const zero = new Network({ context: `neo:0:${registry}`, primitives: noblePrimitives });
  const address = account.slice('neo:860833102:'.length);
  file.valid('account of magic 0', 'account.check', { account: `neo:0:${address}` }, zero);
  for (const [name, wrong] of [
    ['another magic', `neo:860833103:${address}`],
    ['leading zero', `neo:0860833102:${address}`],
    ['another namespace', `eip155:860833102:${address}`],
    ['no namespace', address],
    ['a part too many', `${account}:x`],
    ['trailing line feed', `${account}\n`],
    ['wrong checksum', `neo:860833102:${address.slice(0, -1)}q`],
    ['wrong version', 'neo:860833102:1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2'],
    ['a character outside the alphabet', `neo:860833102:${address.slice(0, -1)}0`],
    ['one character less', account.slice(0, -1)],
    ['empty address', 'neo:860833102:'],
  ] as const) {
    file.invalid(`account: ${name}`, 'account.check', { account: wrong });
  }
  const relay_id = `0x${'0a'.repeat(20)}`;
  file.valid('relay ID', 'relay_id.check', { relay_id });
  for (const wrong of [
    relay_id.slice(2),
    relay_id.toUpperCase(),
    `0x${'0A'.repeat(20)}`,
    `${relay_id}0`,
    relay_id.slice(0, -1),
    `${relay_id}\n`,
  ]) {
    file.invalid(`R1: relay ID ${JSON.stringify(wrong)}`, 'relay_id.check', { relay_id: wrong });
  }
  for (const endpoint of [
    'https://RELAY.example:443/svc/v1',
    'wss://relay.example/svc/v1',
    'https://relay.example:8443/svc/v1',
    'wss://relay.example.:443/svc/v1',
    'wss://[2001:DB8:0:0:0:0:0:1]:444/svc/v1',
    'https://[2001:db8:0:0:1:0:0:1]/svc/v1',
    'https://[::ffff:192.0.2.1]/svc/v1',
    'https://relay.example:08443/svc/v1',
    'https://faß.example/svc/v1',
  ]) {
    file.valid(`origin of ${endpoint}`, 'origin.derive', { endpoint });
  }
  for (const endpoint of ['http://relay.example', 'ftp://relay.example', 'relay.example', '']) {
    const name = `no origin of ${JSON.stringify(endpoint)}`;
    file.invalid(name, 'origin.derive', { endpoint }, { error: 'invalid' });
  }
  return file;
}

const p = 2n ** 255n - 19n;
const edOrder = 2n ** 252n + 27742317777372353535851937790883648493n;
const n = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
const p256Field = 0xffffffff00000001000000000000000000000000ffffffffffffffffffffffffn;

function bigEndian(value: bigint): string {
  return value.toString(16).padStart(64, '0');
}

function littleEndian(value: bigint): string {
  return hex(fromHex(bigEndian(value)).reverse());
}

const text = (hexText: string) => encodeBase64url(fromHex(hexText));

export function signatureVectors(): VectorFile {
  const file = new VectorFile('Signatures and shared secrets', '01 §5.1 to §5.3');
  deviceSignatures(file);
  accountSignatures(file);
  sharedSecrets(file);
  return file;
}

function deviceSignatures(file: VectorFile): void {
  const scheme = 'ed25519';
  const message_hex = hexOf('a message');
  const private_key = encodeBase64url(ann.device.signingSeed);
  file.valid('Ed25519: sign', 'signature.make', { scheme, private_key, message_hex });
  const public_key = ann.device.signingPublicKey;
  const signature = hex(ann.device.sign(fromHex(message_hex)));
  const [r, s] = [signature.slice(0, 64), signature.slice(64)];
  const scalar = BigInt(`0x${hex(fromHex(s).reverse())}`);
  const verify = (name: string, valid: boolean, changes: Record<string, string> = {}) => {
    const input = { scheme, public_key, message_hex, signature: text(signature), ...changes };
    file.exact(`Ed25519: ${name}`, 'signature.verify', input, { valid });
  };
  verify('genuine', true);
  verify('another message', false, { message_hex: hexOf('A message') });
  verify('another key', false, { public_key: ben.device.signingPublicKey });
  verify('S + L', false, { signature: text(r + littleEndian(scalar + edOrder)) });
  verify('S of zero', false, { signature: text(r + littleEndian(0n)) });
  verify('63 bytes', false, { signature: text(signature.slice(2)) });
  for (const [name, y] of [
    ['0', 0n],
    ['1, the identity', 1n],
    ['p - 1', p - 1n],
    ['order 8', 0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7n],
    ['order 8, mirrored', 0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n],
    ['p, not canonical', p],
    ['p + 1, not canonical', p + 1n],
    ['2^255 - 1, not canonical', 2n ** 255n - 1n],
  ] as const) {
    // With S = 1 and R = B the equation holds for the identity, and sometimes for the others.
    const base = `58${'66'.repeat(31)}`;
    const easy = text(base + littleEndian(1n));
    for (const [sign, bit] of [
      ['', 0n],
      [', sign bit set', 2n ** 255n],
    ] as const) {
      const key = text(littleEndian(y + bit));
      verify(`key of y = ${name}${sign}`, false, { public_key: key, signature: easy });
      verify(`R of y = ${name}${sign}`, false, { signature: text(littleEndian(y + bit) + s) });
    }
  }
}

function accountSignatures(file: VectorFile): void {
  const scheme = 'p256';
  // RFC 6979 §A.2.5 with "sample": its s is above n/2.
  const private_key = text('c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721');
  const message_hex = hexOf('sample');
  file.valid('P-256: RFC 6979, high s', 'signature.make', { scheme, private_key, message_hex });
  const x = '60fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6';
  const r = 'efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716';
  const s = 'f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8';
  const verify = (name: string, valid: boolean, changes: Record<string, string> = {}) => {
    const genuine = { scheme, public_key: text(`03${x}`), message_hex, signature: text(r + s) };
    file.exact(`P-256: ${name}`, 'signature.verify', { ...genuine, ...changes }, { valid });
  };
  verify('high s', true);
  verify('S2: n - s is valid too', true, { signature: text(r + bigEndian(n - BigInt(`0x${s}`))) });
  verify('another message', false, { message_hex: hexOf('Sample') });
  verify('the other point of the same X', false, { public_key: text(`02${x}`) });
  for (const value of [0n, n, 2n ** 256n - 1n]) {
    verify(`r = ${value}`, false, { signature: text(bigEndian(value) + s) });
    verify(`s = ${value}`, false, { signature: text(r + bigEndian(value)) });
  }
  for (const prefix of ['00', '01', '04', '05', '06', '07']) {
    verify(`prefix ${prefix}`, false, { public_key: text(prefix + x) });
  }
  verify('X = p', false, { public_key: text(`02${bigEndian(p256Field)}`) });
  verify('X = p + 5, where 5 is on the curve', false, {
    public_key: text(`02${bigEndian(p256Field + 5n)}`),
  });
  verify('X = 1, not on the curve', false, { public_key: text(`02${bigEndian(1n)}`) });
  verify('a signature of 63 bytes', false, { signature: text((r + s).slice(2)) });
}

function sharedSecrets(file: VectorFile): void {
  const private_key = text('77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a');
  const peer = 'de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f';
  file.valid('X25519: RFC 7748 §6.1', 'x25519.shared', { private_key, public_key: text(peer) });
  for (const [name, u] of [
    ['0', 0n],
    ['1', 1n],
    ['p - 1', p - 1n],
    ['p', p],
    ['p + 1', p + 1n],
    ['0 with the top bit', 2n ** 255n],
    ['1 with the top bit', 2n ** 255n + 1n],
    ['order 8', 0xb8495f16056286fdb1329ceb8d09da6ac49ff1fae35616aeb8413b7c7aebe0n],
  ] as const) {
    const input = { private_key, public_key: text(littleEndian(u)) };
    file.invalid(`X25519: u = ${name}`, 'x25519.shared', input, { error: 'all_zero' });
  }
}
