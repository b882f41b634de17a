/** Keys, networks and the builder that all makers of vectors share. Keys are for testing only. */
import { noblePrimitives, type Random } from '../../src/crypto/index.ts';
import {
  accountSigner,
  type DeviceCertificate,
  type DeviceSigner,
  deviceSigner,
  encodeBase64url,
  Network,
} from '../../src/index.ts';
import type { JsonObject, JsonValue } from '../../src/json/index.ts';
import { run } from './operations.ts';

export const context = 'neo:860833102:0x0123456789abcdef0123456789abcdef01234567';
export const network = new Network({ context, primitives: noblePrimitives });
/** Another chain with the same registry, and another registry on the same chain. */
export const otherChain = new Network({
  context: context.replace('860833102', '860833103'),
  primitives: noblePrimitives,
});
export const otherRegistry = new Network({
  context: `neo:860833102:0x${'00'.repeat(20)}`,
  primitives: noblePrimitives,
});

/** Bytes `first`, `first + 1`, … */
export function counting(first: number, length = 32): Uint8Array {
  return Uint8Array.from({ length }, (_, index) => (first + index) % 256);
}

/** Returns a source of the bytes of SHA-256 over a label and a counter. */
export function deterministic(label: string): Random {
  let block = 0;
  let rest = new Uint8Array();
  return (length) => {
    while (rest.length < length) {
      const text = new TextEncoder().encode(`${label} ${block}`);
      rest = Uint8Array.from([...rest, ...noblePrimitives.sha256(text)]);
      block += 1;
    }
    const bytes = rest.slice(0, length);
    rest = rest.slice(length);
    return bytes;
  };
}

export interface TestDevice extends DeviceSigner {
  /** 32 bytes each. */
  readonly signingSeed: Uint8Array;
  readonly encryptionKey: Uint8Array;
}

function testDevice(seed: number, key: number): TestDevice {
  const keys = { signingSeed: counting(seed), encryptionKey: counting(key) };
  return { ...deviceSigner(network, keys), ...keys };
}

/** Ann, with the keys of chapter 01, appendix A, and a second device; Ben with one. */
export const ann = {
  signer: accountSigner(network, counting(0x01)),
  device: testDevice(0x21, 0x41),
  second: testDevice(0x29, 0x49),
};
export const ben = {
  signer: accountSigner(network, counting(0x81)),
  device: testDevice(0xa1, 0xc1),
};
export const relayKey = accountSigner(network, counting(0x61));
export const otherRelayKey = accountSigner(network, counting(0x69));

/** 2025-01-01T00:00:00Z. */
export const start = 1_735_689_600;
/** Longest period of a certificate, in seconds. */
export const period = 62_208_000;

type Person = Pick<typeof ann, 'signer'>;

/**
 * Returns a certificate signed by hand: members may be changed or added before signing, so that
 * what is signed correctly can still be wrong.
 */
export function certificateOf(
  person: Person,
  device: DeviceSigner,
  changes: JsonObject = {},
): DeviceCertificate & JsonObject {
  const facts = {
    $type: network.type('device.certificate'),
    account: person.signer.account,
    account_public_key: person.signer.publicKey,
    signing_public_key: device.signingPublicKey,
    encryption_public_key: device.encryptionPublicKey,
    not_before: start,
    expires_at: start + period,
    ...changes,
  };
  const signed = signedBy(device, facts, 'device_signature');
  return signedBy(person.signer, signed, 'account_signature');
}

/** Returns the object with the signature of a key over everything that is in it. */
export function signedBy<T extends JsonObject, N extends string>(
  key: { sign(message: Uint8Array): Uint8Array | Promise<Uint8Array> },
  object: T,
  name: N,
): T & Record<N, string> {
  const signature = key.sign(network.bytes(object));
  if (!(signature instanceof Uint8Array)) throw new Error('test keys sign at once');
  return { ...object, [name]: encodeBase64url(signature) } as T & Record<N, string>;
}

/** Returns a copy without some members. */
export function without(object: JsonObject, ...names: string[]): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)));
}

/** Another text of the same form: a signature that is well-formed and wrong. */
export function tampered(text: string): string {
  return (text.startsWith('A') ? 'B' : 'A') + text.slice(1);
}

/** One vector file in the making. */
export class VectorFile {
  readonly #title: string;
  readonly #source: string;
  readonly #cases: JsonObject[] = [];

  constructor(title: string, source: string) {
    this.#title = title;
    this.#source = source;
  }

  /** A case that must succeed; what the operation gives is written down. */
  valid(name: string, operation: string, input: JsonObject, on: Network = network): void {
    this.#add({ name, operation, input, on, error: undefined });
  }

  /** A case that must be refused with this code. */
  invalid(
    name: string,
    operation: string,
    input: JsonObject,
    { error = 'bad_request', on = network }: { error?: string; on?: Network } = {},
  ): void {
    this.#add({ name, operation, input, on, error });
  }

  /** A case whose outcome is given by hand. */
  exact(name: string, operation: string, input: JsonObject, expected: JsonObject): void {
    const outcome = run(operation, network, input);
    if (JSON.stringify(outcome) !== JSON.stringify(expected)) {
      throw new Error(`${name}: ${JSON.stringify(outcome)} is not as intended`);
    }
    this.#push(name, { operation, input, expected: outcome, on: network });
  }

  #add(made: {
    name: string;
    operation: string;
    input: JsonObject;
    on: Network;
    error: string | undefined;
  }): void {
    const expected = run(made.operation, made.on, made.input);
    if (expected.error !== made.error) {
      throw new Error(`${made.name}: ${JSON.stringify(expected)}, not ${made.error ?? 'valid'}`);
    }
    this.#push(made.name, { ...made, expected });
  }

  #push(
    name: string,
    made: { operation: string; input: JsonObject; expected: JsonObject; on: Network },
  ): void {
    if (this.#cases.some((known) => known.name === name)) throw new Error(`${name} twice`);
    const { operation, input, expected, on } = made;
    const other = on === network ? {} : { network_context: on.context };
    this.#cases.push({ name, ...other, operation, input, expected });
  }

  /** Returns the text of the file. */
  text(): string {
    const file: Record<string, JsonValue> = {
      title: this.#title,
      source: this.#source,
      service_word: network.word,
      network_context: network.context,
      cases: this.#cases,
    };
    return `${JSON.stringify(file, null, 2)}\n`;
  }
}
