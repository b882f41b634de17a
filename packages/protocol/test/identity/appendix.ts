/** The network and the keys of chapter 01, appendix A, and the genuine objects made with them. */
import { noblePrimitives } from '../../src/crypto/index.ts';
import {
  type AccountDeviceState,
  type AccountProfile,
  accountSigner,
  type DeviceCertificate,
  deviceSigner,
  type ErrorCode,
  Network,
  ProtocolError,
  type RelayDescriptor,
} from '../../src/index.ts';

export const context = 'neo:860833102:0x0123456789abcdef0123456789abcdef01234567';
export const network = new Network({ context, primitives: noblePrimitives });
/** Same chain, another registry. */
export const otherRegistry = new Network({
  context: `neo:860833102:0x${'00'.repeat(20)}`,
  primitives: noblePrimitives,
});
/** Another chain, same registry. */
export const otherChain = new Network({
  context: 'neo:860833103:0x0123456789abcdef0123456789abcdef01234567',
  primitives: noblePrimitives,
});

/** Bytes `first`, `first + 1`, … */
export function counting(first: number, length = 32): Uint8Array {
  return Uint8Array.from({ length }, (_, index) => first + index);
}

export const account = accountSigner(network, counting(0x01));
export const device = deviceSigner(network, {
  signingSeed: counting(0x21),
  encryptionKey: counting(0x41),
});
export const relay = accountSigner(network, counting(0x61));
export const relayId = '0x47a431a6724d6eff8a0f4f4707de09f63943028e';
export const otherAccount = accountSigner(network, counting(0x81));
export const otherDevice = deviceSigner(network, {
  signingSeed: counting(0xa1),
  encryptionKey: counting(0xc1),
});

/** Chapter 01, section 8. */
export const certificate: DeviceCertificate = {
  $type: 'svc.device.certificate',
  account: 'neo:860833102:NgaxELHoZFpQWNwd74Fvq4wF3qz57WTfpp',
  account_public_key: 'AlFcPW6545a5BNP-yn9U_c0MwemXvzddylFa0KbDtANf',
  signing_public_key: '5_FioQvsVZr-oZXk3OhLaVaNXSywlj60RsBoXisX8vA',
  encryption_public_key: 'ZLEBsdC-WocEvQePmJUAH8A-jp-VIvGI3RKNmEbUhGY',
  not_before: 1735689600,
  expires_at: 1797897600,
  device_signature:
    'gLGMP6hpWGruCpoOBnP3EDzaTcHGxGyaA8DwjJuzibhQqZjqB0ooknpjn5jhLwMxU4---DYmgq-C0cIzYMJNAg',
  account_signature:
    'q44HlRRjpAdg-iHvSkbBXMojMBffS86iBWo7iGrFIjWaZvf9HkSHHhCnJDaXmGnMG4VVWjGFyxRDO7dtBFuZ2A',
};
export const deviceId = 'dev_PvjHcDCCuH2I3lD_0gfWlQ';

/** Chapter 01, section 10. */
export const state: AccountDeviceState = {
  $type: 'svc.account.device.state',
  account: certificate.account,
  account_public_key: certificate.account_public_key,
  revision: 1735689600123,
  certificates: [certificate],
  account_signature:
    'WDMdyn8eFXiTEhYmVPLwL0apFXYlZbFX_YDTWnM3UgMnwtZI89ge7pzbN7ti2bjOGX3qnpEuaIH2pzHFJxP7tA',
};

/** Chapter 01, section 11. */
export const profile: AccountProfile = {
  $type: 'svc.profile',
  account: certificate.account,
  nickname: 'Ann é😀',
  public_discovery: true,
  updated_at: 1735689700,
  device_signature:
    'shGZbzf3bgT5ZQYfXq0-110gjKi2ZZ29hdGPMlOnOUleUuDJX0iulikQqR4LUuawxmkKgl4vd4FkUWW0xN4ACA',
};

/** Chapter 01, section 13. */
export const descriptor: RelayDescriptor = {
  $type: 'svc.relay.descriptor',
  relay_id: relayId,
  public_key: 'A71XFLnCBABBHx5R2_9jZH8F0dcLVfwgDGytEML0YU3B',
  endpoints: [
    'https://relay.example.com/svc/v1',
    'wss://relay.example.com/svc/v1',
    '/dns4/relay.example.com/tcp/4201/p2p/12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA',
  ],
  capabilities: ['channel.host.v1', 'group.host.v1'],
  expires_at: 1767225600,
  relay_signature:
    'WgHaz6kcYtod2HQbHFf-OzZnT2mwCCcJua8O6cUQ6gBo2cmnUnRV5z9ZDU7-EmkMu7EgEzVSYYNLsENAXE4Hfg',
};

/** The code a call fails with; `undefined` where it does not fail. */
export function codeOf(call: () => unknown): ErrorCode | undefined {
  try {
    call();
    return undefined;
  } catch (error) {
    if (error instanceof ProtocolError) return error.code;
    throw error;
  }
}

/** A copy of an object without some members. */
export function without<T extends object>(object: T, ...names: string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)));
}

/** A copy of an object with one more unknown member that makes it `bytes` of Canonical JSON. */
export function padded<T extends object>(object: T, bytes: number): T & { zz: string } {
  const empty = { ...object, zz: '' };
  const size = new TextEncoder().encode(JSON.stringify(empty)).length;
  if (size > bytes) throw new Error('the object is larger already');
  return { ...empty, zz: 'x'.repeat(bytes - size) };
}

/** Another text of the same length and alphabet: a signature that is well-formed and wrong. */
export function tampered(base64url: string): string {
  const first = base64url.startsWith('A') ? 'B' : 'A';
  return first + base64url.slice(1);
}
