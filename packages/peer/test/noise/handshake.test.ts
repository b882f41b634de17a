import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { CipherState } from '../../src/noise/cipher.ts';
import { NoiseHandshake } from '../../src/noise/handshake.ts';
import { generateNoiseKeys, noiseKeysOf, sharedSecret } from '../../src/noise/keys.ts';
import { hex } from '../support/bytes.ts';

type Vector = Readonly<Record<string, string>>;

/** Published vectors; each block has lines of name and value. */
const vectors: Vector[] = readFileSync(new URL('vectors.txt', import.meta.url), 'utf8')
  .split('\n\n')
  .filter((block) => block.startsWith('handshake='))
  .map((block) =>
    Object.fromEntries(
      block
        .trim()
        .split('\n')
        .map((line) => line.split('=') as [string, string]),
    ),
  );

const bytes = (vector: Vector, name: string) => Buffer.from(vector[name] ?? '', 'hex');

function pairOf(vector: Vector): [NoiseHandshake, NoiseHandshake] {
  const prologue = bytes(vector, 'prologue');
  return [
    new NoiseHandshake({
      role: 'initiator',
      staticKeys: noiseKeysOf(bytes(vector, 'init_static')),
      ephemeralKeys: noiseKeysOf(bytes(vector, 'gen_init_ephemeral')),
      prologue,
    }),
    new NoiseHandshake({
      role: 'responder',
      staticKeys: noiseKeysOf(bytes(vector, 'resp_static')),
      ephemeralKeys: noiseKeysOf(bytes(vector, 'gen_resp_ephemeral')),
      prologue,
    }),
  ];
}

/** Two sides with new keys. */
function freshPair(): [NoiseHandshake, NoiseHandshake] {
  return [
    new NoiseHandshake({ role: 'initiator', staticKeys: generateNoiseKeys() }),
    new NoiseHandshake({ role: 'responder', staticKeys: generateNoiseKeys() }),
  ];
}

describe('Noise_XX_25519_ChaChaPoly_SHA256', () => {
  test('07 §B2: there are four published vectors', () => {
    expect(vectors).toHaveLength(4);
  });

  test.each(vectors.map((vector, index) => ({ index, vector })))(
    '07 §B2: published vector $index: the same bytes in both directions',
    ({ vector }) => {
      const [initiator, responder] = pairOf(vector);
      for (const index of [0, 1, 2]) {
        const [writer, reader] = index === 1 ? [responder, initiator] : [initiator, responder];
        const payload = bytes(vector, `msg_${index}_payload`);
        const message = writer.write(payload);
        expect(hex(message)).toBe(vector[`msg_${index}_ciphertext`]);
        expect(hex(reader.read(message))).toBe(hex(payload));
      }
      expect(hex(responder.remoteStatic)).toBe(
        hex(noiseKeysOf(bytes(vector, 'init_static')).publicKey),
      );
      const [first, second] = [initiator.finish(), responder.finish()];
      for (const [index, from, to] of [
        [3, first, second],
        [4, second, first],
      ] as const) {
        const { ciphertext, tag } = from.sending.encrypt(bytes(vector, `msg_${index}_payload`));
        const message = Buffer.concat([ciphertext, tag]);
        expect(hex(message)).toBe(vector[`msg_${index}_ciphertext`]);
        expect(hex(to.receiving.decrypt(message))).toBe(vector[`msg_${index}_payload`]);
      }
    },
  );

  test('07 §B3: every handshake message cut at every byte, or with a byte changed, is refused', () => {
    for (const failing of [0, 1, 2]) {
      const whole = 32 + (failing === 0 ? 0 : failing === 1 ? 64 : 32) + 7;
      for (let at = 0; at < whole; at += 1) {
        const [initiator, responder] = freshPair();
        for (let index = 0; index < failing; index += 1) {
          const [writer, reader] = index === 1 ? [responder, initiator] : [initiator, responder];
          reader.read(writer.write(Buffer.from('payload')));
        }
        const [writer, reader] = failing === 1 ? [responder, initiator] : [initiator, responder];
        const message = writer.write(Buffer.from('payload'));
        const cut = message.subarray(0, at);
        const outcome = () => reader.read(cut);
        // Message 1 is not authenticated: shorter payloads of it are seen by the hash in message 2.
        if (failing === 0 && at >= 32) {
          outcome();
          expect(() => initiator.read(responder.write(new Uint8Array()))).toThrow('not authentic');
        } else {
          expect(outcome).toThrow(expect.objectContaining({ code: 'protocol' }));
        }
      }
    }
  });

  test('07 §B3: a handshake message of 65,535 bytes is written, one of 65,536 is not', () => {
    const make = (payload: number) => {
      const [initiator, responder] = freshPair();
      responder.read(initiator.write(new Uint8Array()));
      return responder.write(new Uint8Array(payload));
    };
    expect(make(65_535 - 96)).toHaveLength(65_535);
    expect(() => make(65_536 - 96)).toThrow(expect.objectContaining({ code: 'limit' }));
  });

  test('07 §B3: writing or reading out of turn is a fault of the caller', () => {
    const [initiator, responder] = freshPair();
    expect(() => responder.write(new Uint8Array())).toThrow(TypeError);
    const message = initiator.write(new Uint8Array());
    expect(() => initiator.write(new Uint8Array())).toThrow(TypeError);
    expect(() => initiator.finish()).toThrow(TypeError);
    expect(() => initiator.remoteStatic).toThrow(TypeError);
    expect(hex(responder.read(message))).toBe('');
  });
});

describe('X25519', () => {
  test.each([
    '0000000000000000000000000000000000000000000000000000000000000000',
    '0100000000000000000000000000000000000000000000000000000000000000',
    'e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800',
    '5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157',
    'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
    'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
    'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  ])('07 §B2: the key of small order %s is refused', (key) => {
    expect(() => sharedSecret(generateNoiseKeys(), Buffer.from(key, 'hex'))).toThrow(
      expect.objectContaining({ code: 'protocol' }),
    );
  });
});

describe('CipherState', () => {
  const key = () => Buffer.alloc(32, 7);

  test('07 §B2: the last of 2^32 messages works, the next one ends the connection', () => {
    const sending = new CipherState(key(), 2 ** 32 - 1);
    const receiving = new CipherState(key(), 2 ** 32 - 1);
    const { ciphertext, tag } = sending.encrypt(Buffer.from('last'));
    expect(receiving.decrypt(Buffer.concat([ciphertext, tag])).toString()).toBe('last');
    expect(() => sending.encrypt(Buffer.from('x'))).toThrow(
      expect.objectContaining({ code: 'limit' }),
    );
  });

  test('07 §B2: a message is accepted once and in order', () => {
    const sending = new CipherState(key());
    const receiving = new CipherState(key());
    const messages = ['a', 'b'].map((text) => {
      const { ciphertext, tag } = sending.encrypt(Buffer.from(text));
      return Buffer.concat([ciphertext, tag]);
    }) as [Buffer, Buffer];
    expect(receiving.decrypt(messages[0]).toString()).toBe('a');
    expect(() => receiving.decrypt(messages[0])).toThrow('not authentic');
    expect(() => receiving.decrypt(Buffer.alloc(15))).toThrow('shorter');
  });

  test('07 §B2: a destroyed state holds no key and is of no use', () => {
    const bytes = key();
    const state = new CipherState(bytes);
    state.destroy();
    expect(hex(bytes)).toBe('00'.repeat(32));
    expect(() => state.encrypt(Buffer.from('x'))).toThrow();
  });
});
