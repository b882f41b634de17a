/** Messages as appends write them, for the tests of their batches (decision record 0027). */
import { accounts } from '../../src/accounts/index.ts';
import { digest } from '../../src/digest.ts';
import type { AccountFacts } from '../../src/known-accounts.ts';
import { messages } from '../../src/messages/index.ts';
import { envelopeId } from '../../src/messages/message-parts.ts';
import type { ReceivedMessage } from '../../src/messages/received-message.ts';
import type { SentMessage } from '../../src/messages/sent-message.ts';
import type { Writer } from '../../src/storage/types.ts';

/** Accounts at home here. */
export const names = ['ann', 'ben', 'cat', 'dan'] as const;
export type Name = (typeof names)[number];
/** Accounts at home elsewhere; of the first a route is known. */
export const senders = ['xin', 'yan'] as const;

/** A database that has these accounts, for `EnginePair`. */
export const stored = {
  modules: [accounts, messages],
  async fill(tx: Writer) {
    const route = `INSERT INTO account_routes (account, revision, content, relay_id, expires_at,
      conflict, route, held_until) VALUES (?, 3, 'c', ?, 1000, 0, 'r', 900)`;
    await tx.run(route, 'xin', 'there');
    for (const name of names) {
      await tx.run(route, name, 'here');
      await tx.run(`INSERT INTO device_states VALUES (?, 5, 's')`, name);
    }
    await tx.run(`INSERT INTO profiles VALUES ('ben', 7, 1, 'p', 'c')`);
  },
};

const factsOf = (account: Name): AccountFacts => ({
  account,
  home: { relayId: 'here', heldUntil: 900, conflict: false },
  routeRevision: 3,
  stateRevision: 5,
  isPublic: account === 'ben',
  devices: new Map(),
});
const facts = new Map(names.map((name) => [name, factsOf(name)]));

const boxesOf = (name: string, count: number, text: string) =>
  new Map(Array.from({ length: count }, (_, n) => [`${name}-${n}`, `{"box":"${text}${n}"}`]));
const certificateOf = (account: string) => ({
  ...{ id: digest(account), deviceId: `${account}-0`, text: `{"of":"${account}"}` },
});

export interface Sent {
  readonly from: Name;
  readonly to: Name;
  readonly id: number;
  /** Number of the recipient's boxes. */
  readonly boxes?: number;
  /** Number of the sender's boxes. */
  readonly own?: number;
  readonly text?: string;
  readonly at?: number;
  readonly hasCertificate?: boolean;
}

export function sentMessage(
  sent: Sent,
  isCurrent: SentMessage['isCurrent'] = () => true,
): SentMessage {
  const { from, to, id, boxes = 1, own = 0, text = '', at = 100, hasCertificate = true } = sent;
  const envelope = `{"from":"${from}","id":${id},"text":${JSON.stringify(text)}}`;
  return {
    key: { sender: from, messageId: `m${id}` },
    result: {
      request: digest(JSON.stringify(sent)),
      acceptedAt: at,
      keepUntil: at + 50,
      status: 'target_accepted',
      received: digest(envelope),
    },
    facts: [...new Set([from, to].toSorted())].map((name) => facts.get(name) as AccountFacts),
    isCurrent,
    envelope: { id: digest(envelope), text: envelope, bytes: Buffer.byteLength(envelope) },
    certificate: certificateOf(from),
    certificateKeepUntil: hasCertificate ? at + 80 : undefined,
    records: [
      ...(own === 0 ? [] : [{ account: from, boxes: boxesOf(from, own, text) }]),
      { account: to, boxes: boxesOf(to, boxes, text) },
    ],
    keepUntil: at + 40,
  };
}

export interface Received {
  readonly from?: string;
  readonly to: Name;
  readonly id: number;
  readonly boxes?: number;
  readonly text?: string;
  readonly at?: number;
}

export function receivedMessage(received: Received, isCurrent = () => true): ReceivedMessage {
  const { from = 'xin', to, id, boxes = 1, text = '', at = 100 } = received;
  const envelope = `{"from":"${from}","id":${id},"to":"${to}","text":${JSON.stringify(text)}}`;
  const content = digest(envelope);
  return {
    key: { sender: from, messageId: `m${id}` },
    result: { request: digest(JSON.stringify(received)), content, acceptedAt: at, keepUntil: 150 },
    facts: facts.get(to) as AccountFacts,
    isCurrent,
    envelope: {
      id: envelopeId(at, content),
      ...{ text: envelope, bytes: Buffer.byteLength(envelope) },
    },
    certificate: certificateOf(from),
    boxes: boxesOf(to, boxes, text),
    keepUntil: at + 40,
    certificateKeepUntil: at + 80,
  };
}
