/** The network and people of the worked examples of chapters 03 and 04, appendix A. */
import { noblePrimitives, type Random } from '../../src/crypto/index.ts';
import {
  type AccountDeviceState,
  accountSigner,
  type DeviceCertificate,
  deviceSigner,
  type ErrorCode,
  Network,
  ProtocolError,
  type SigningDevice,
  signDeviceCertificate,
  signDeviceState,
  signingDevice,
} from '../../src/index.ts';

const context = 'neo:860833102:0x1234567890abcdef1234567890abcdef12345678';
export const network = new Network({ context, primitives: noblePrimitives });
/** Same chain, another registry. */
export const otherNetwork = new Network({
  context: `neo:860833102:0x${'00'.repeat(20)}`,
  primitives: noblePrimitives,
});
/** The instant everything is signed at. */
export const now = 1_750_000_000;

export const fill = (byte: number, length = 32) => new Uint8Array(length).fill(byte);

/** A device with everything that tests need of it. */
export interface TestDevice extends SigningDevice {
  readonly certificate: DeviceCertificate;
  readonly encryptionPrivateKey: Uint8Array;
}

/** An account on a scalar of one repeated byte. */
const accountOf = (byte: number) => accountSigner(network, fill(byte));

/** A device on keys of repeated bytes, valid from a day ago for a year. */
async function deviceOf(
  accountByte: number,
  keys: { readonly signing: number; readonly encryption: number },
  period: { readonly notBefore?: number; readonly expiresAt?: number } = {},
): Promise<TestDevice> {
  const account = accountOf(accountByte);
  const encryptionPrivateKey = fill(keys.encryption);
  const device = deviceSigner(network, {
    signingSeed: fill(keys.signing),
    encryptionKey: encryptionPrivateKey,
  });
  const { notBefore = now - 86_400, expiresAt = now + 31_536_000 } = period;
  const parts = { account, device, notBefore, expiresAt };
  const certificate = await signDeviceCertificate(network, parts);
  return {
    ...signingDevice(network, account.account, device),
    certificate,
    encryptionPrivateKey,
  };
}

/** The account's state with these devices. */
export const stateOf = (accountByte: number, devices: readonly TestDevice[], revision = 1) =>
  signDeviceState(network, accountOf(accountByte), {
    revision,
    certificates: devices.map(({ certificate }) => certificate),
  });

export const alice = await deviceOf(0x01, { signing: 0x11, encryption: 0x12 });
export const alicePhone = await deviceOf(0x01, { signing: 0x13, encryption: 0x14 });
export const bob = await deviceOf(0x02, { signing: 0x21, encryption: 0x22 });
export const bobPhone = await deviceOf(0x02, { signing: 0x23, encryption: 0x24 });
/** Bob's, with the signing key of his phone under another device ID. */
export const bobTwin = await deviceOf(0x02, { signing: 0x23, encryption: 0x25 });
/** Bob's, expired. */
export const bobOld = await deviceOf(
  0x02,
  { signing: 0x26, encryption: 0x27 },
  { notBefore: now - 86_400, expiresAt: now },
);
export const carol = await deviceOf(0x03, { signing: 0x31, encryption: 0x32 });

export const aliceState: AccountDeviceState = await stateOf(0x01, [alice, alicePhone]);
export const bobState: AccountDeviceState = await stateOf(0x02, [bob, bobPhone, bobTwin, bobOld]);
export const carolState: AccountDeviceState = await stateOf(0x03, [carol]);

/** Hands out the given bytes, each once, in order. */
export function drawing(...parts: readonly Uint8Array[]): Random {
  const left = [...parts];
  return (length) => {
    const next = left.shift();
    if (next?.length !== length) throw new Error(`unexpected draw of ${length} bytes`);
    return next;
  };
}

/** Different bytes at every draw, the same in every run. */
export function counting(): Random {
  let drawn = 0;
  return (length) => {
    drawn += 1;
    return network.primitives.sha256(fill(drawn % 256, 1 + (drawn >> 8))).subarray(0, length);
  };
}

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

/** Another text of the same length and alphabet: well-formed and wrong. */
export function tampered(base64url: string): string {
  return (base64url.startsWith('A') ? 'B' : 'A') + base64url.slice(1);
}
