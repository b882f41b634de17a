/** What clients received, and whether it is right: reads timelines through the front door alone. */
import type { MessageEnvelope } from '@posthouse/protocol';
import { canonicalJson, type JsonValue } from '@posthouse/protocol/json';
import type { HomeRelay, Person, SendParams } from '../fixtures/person.ts';

/** A record as `message.timeline.sync` gives it. */
interface TimelineItem {
  readonly sequence: number;
  readonly envelope: MessageEnvelope;
}

interface TimelinePage {
  readonly items: readonly TimelineItem[];
  readonly has_more: boolean;
}

/** A message that its home relay accepted. */
export interface SentMessage {
  readonly from: Person;
  readonly to: Person;
  readonly message: SendParams;
}

/** Reads all of an account's timeline at a relay as one of its devices, in small pages. */
async function readTimeline(
  relay: HomeRelay,
  person: Person,
  device = 'phone',
): Promise<readonly TimelineItem[]> {
  const items: TimelineItem[] = [];
  for (;;) {
    const params = { after: items.at(-1)?.sequence ?? -1, limit: 7 };
    const session = person.session(device);
    const answer = await relay.call('message.timeline.sync', params, { session });
    const page = answer as unknown as TimelinePage;
    items.push(...page.items);
    if (!page.has_more) return items;
  }
}

/**
 * Compares what accounts received with what was sent: each message exactly once with its recipient
 * and, if it has a box for the sender, with the sender; nothing else anywhere; no byte changed.
 *
 * @param homes the relays at which each account was at home, for an account that moved all of them
 * @returns one sentence for each difference
 */
export async function differences(
  sent: readonly SentMessage[],
  homes: ReadonlyMap<Person, readonly HomeRelay[]>,
): Promise<string[]> {
  const found: string[] = [];
  for (const [person, relays] of homes) {
    const expected = new Map<string, SentMessage>();
    for (const one of sent) {
      const isSender = one.from === person && (one.message.sender_boxes ?? []).length > 0;
      if (one.to === person || isSender) expected.set(one.message.envelope.message_id, one);
    }
    for (const relay of relays) {
      let last = -1;
      for (const { sequence, envelope } of await readTimeline(relay, person)) {
        const { message_id } = envelope;
        if (sequence <= last) found.push(`${message_id}: sequence ${sequence} after ${last}`);
        last = sequence;
        const one = expected.get(message_id);
        if (one === undefined) found.push(`${message_id}: received twice, or never sent`);
        else if (textOf(envelope) !== textOf(one.message.envelope)) {
          found.push(`${message_id}: received with another content`);
        }
        expected.delete(message_id);
      }
    }
    for (const id of expected.keys()) found.push(`${id}: not received by ${person.account}`);
  }
  return found;
}

const textOf = (envelope: MessageEnvelope) => canonicalJson(envelope as unknown as JsonValue);
