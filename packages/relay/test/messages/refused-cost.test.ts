/** What a `message.send` that is not accepted makes the relay verify (02 §18). */
import type { Authorization } from '@posthouse/protocol';
import { beforeEach, expect, test } from 'vitest';
import type { SendParams } from '../fixtures/person.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

const relay = inProcessRelay();
const ann = relay.person('ann');
const ben = relay.person('ben', ['phone', 'laptop', 'tablet']);
let verified = 0;

beforeEach(() => countVerified());

function countVerified(): void {
  verified = 0;
  const { verifier } = relay.context;
  const { verify, verifyOnce } = verifier;
  verifier.verify = (checks, ...rest) => {
    verified += checks.length;
    return verify(checks, ...rest);
  };
  verifier.verifyOnce = (text, checks, ...rest) => {
    const counted = () => {
      const found = checks();
      verified += found.length;
      return found;
    };
    return verifyOnce(text, counted, ...rest);
  };
}

const codeOf = (message: SendParams) =>
  relay.codeOf('message.send', message, { session: ann.session() });

function forged<T extends object>(signed: T): T {
  return { ...signed, extra: 1 };
}

/** A grant with a signature of each of ben's devices, none of which verifies. */
function forgedGrant(): Authorization {
  const grant = ben.grant(ann);
  const [signature = ''] = Object.values(grant.signatures);
  const signatures = Object.fromEntries(ben.deviceIds().map((id) => [id, signature]));
  return forged({ ...grant, signatures });
}

function forgedBy(device: string): Authorization {
  return forged(ben.grant(ann, {}, device));
}

test.each<[string, string, number, () => SendParams]>([
  [
    'whose envelope is forged',
    'invalid_signature',
    1,
    () => {
      const message = ann.message(ben);
      return { ...message, envelope: forged(message.envelope) };
    },
  ],
  ['that nothing permits', 'forbidden', 1, () => ann.message(ben)],
  [
    'with a forged invite',
    'invalid_signature',
    2,
    () => ann.message(ben, { authorization: forged(ben.invite()) }),
  ],
  [
    'with a grant whose three signatures are forged',
    'forbidden',
    4,
    () => ann.message(ben, { authorization: forgedGrant() }),
  ],
])('02 §18: a message %s costs each signature once', async (_, code, signatures, message) => {
  expect(await codeOf(message())).toBe(code);
  expect(verified).toBe(signatures);
});

test('02 §18: a repeat costs no signature; after a restart, those of the message', async () => {
  const message = ann.message(ben, { authorization: ben.grant(ann) });
  expect(await codeOf(message)).toBe('ok');
  verified = 0;
  expect(await codeOf(message)).toBe('ok');
  const conflict = { ...message, recipient_boxes: ann.message(ben).recipient_boxes };
  expect(await codeOf(conflict)).toBe('state_conflict');
  expect(verified).toBe(0);
  await relay.restart();
  countVerified();
  expect(await codeOf(message)).toBe('ok');
  expect(verified).toBe(2);
});

test.each([
  ['accepted', 'ok', () => ann.message(ben, { authorization: ben.grant(ann), boxes: ['phone'] })],
  ['refused', 'forbidden', () => ann.message(ben, { authorization: forgedBy('phone') })],
])(
  '02 §18: a message that is %s makes no certificate parsed but its signers',
  async (_, code, message) => {
    const others = ben.deviceIds('laptop', 'tablet').map((id) => `'${id}'`);
    await relay.context.storage.write(`account:${ben.account}`, (tx) =>
      tx.run(`UPDATE devices SET certificate = 'none' WHERE device_id IN (${others})`),
    );
    expect(await codeOf(message())).toBe(code);
  },
);
