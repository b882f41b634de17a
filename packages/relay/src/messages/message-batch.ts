/** Sent messages and those of other relays, many in few statements (decision record 0027). */
import type { AppendBatch } from '../storage/types.ts';
import type { Sequences } from './append.ts';
import { insertReceivedResults } from './received-batch.ts';
import type { ReceivedMessage } from './received-message.ts';
import { appendRecords, type BatchRecord, bytesOf } from './record-batch.ts';
import { insertSentResults } from './sent-batch.ts';
import type { SentMessage } from './sent-message.ts';

type Message = SentMessage | ReceivedMessage;

/**
 * Stores messages as the single forms do. Each statement is about one table, and for both kinds of
 * messages; rows that batches of several processes share are locked in the same order: results,
 * heads, certificates. Two statements for the heads, one for each kind, could deadlock.
 */
export const messageBatch: AppendBatch<Message, Sequences> = {
  bytes: (message) => bytesOf(message, recordsOf(message)),
  async write(tx, messages, changed) {
    const received = await insertReceivedResults(tx, messages.filter(isReceived), changed);
    const sent = await insertSentResults(tx, messages.filter(isSent), changed);
    const accepted = [...received, ...sent];
    if (accepted.length === 0) return messages.map(() => undefined);
    const records = accepted.flatMap(recordsOf);
    const sequences = await appendRecords(tx, records);
    // The general way says what is wrong.
    if (sequences === undefined) return undefined;
    const outputs = new Map<Message, number[]>(accepted.map((message) => [message, []]));
    for (const [index, { message }] of records.entries()) {
      outputs.get(message as Message)?.push(sequences[index] as number);
    }
    return messages.map((message) => outputs.get(message));
  },
};

function isReceived(message: Message): message is ReceivedMessage {
  return !isSent(message);
}

function isSent(message: Message): message is SentMessage {
  return Object.hasOwn(message, 'records');
}

function recordsOf(message: Message): readonly BatchRecord[] {
  if (isSent(message)) return message.records.map((record) => ({ message, ...record }));
  const { facts, boxes } = message as ReceivedMessage;
  return [{ message: message as ReceivedMessage, account: facts.account, boxes }];
}
