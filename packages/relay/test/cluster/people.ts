/** Who takes part: accounts at home at the cluster, and their devices under readable names. */
import { createHash } from 'node:crypto';
import { grantedMessage, type TestAccount, type TestContext } from '@posthouse/conformance';
import {
  canonicalJson,
  isJsonObject,
  type JsonObject,
  type JsonValue,
} from '@posthouse/protocol/json';
import type { Entry, Seen } from './log.ts';

type Account = TestAccount['account'];
type Device = TestAccount['device'];

/** A device by the name under which it stands in the log. */
export interface Phone {
  readonly name: string;
  readonly device: Device;
  readonly owner: Person;
  /** How its steady client connects; a device without one need not learn of anything. */
  readonly transport: Transport | undefined;
}

export type Transport = 'wss' | 'https';

/** An account at home at the cluster. */
export interface Person {
  readonly name: string;
  readonly account: Account;
  /** Devices of its current state; the first one is never removed. */
  phones: readonly Phone[];
}

/** Sets an account up, with a device for each transport. */
export async function settlePerson(
  stage: TestContext,
  name: string,
  transports: readonly (Transport | undefined)[],
): Promise<Person> {
  const account = stage.account();
  const person: Person = { name, account, phones: [] };
  const phones: Phone[] = [];
  for (const [index, transport] of transports.entries()) {
    const device = await account.device();
    phones.push({ name: `${name}${index + 1}`, device, owner: person, transport });
  }
  await stage.register(
    account,
    phones.map(({ device }) => device),
  );
  person.phones = phones;
  return person;
}

/** A message ready to be sent, as often as it takes. */
export interface Letter {
  readonly params: JsonObject;
  readonly sending: Extract<Seen, { kind: 'sending' }>;
}

export interface LetterOptions {
  /** Leaves the grant away: the message must be refused. */
  readonly ungranted?: boolean;
  /** Takes the ID of another message: it must be refused. */
  readonly messageId?: string;
}

/** Seals a message that the current devices of both sides can read. */
export function writeLetter(from: Phone, to: Person, options: LetterOptions = {}): Letter {
  const own = from.owner.phones.map(({ device }) => device.certificate);
  const { authorization, ...sealed } = grantedMessage(
    from.device,
    to.phones.map(({ device }) => device),
    {
      senders: own,
      ...(options.messageId !== undefined && { messageId: options.messageId }),
    },
  );
  const params = options.ungranted === true ? sealed : { ...sealed, authorization };
  const { id, content } = identify(sealed.envelope as JsonObject);
  const readers = [...to.phones, ...from.owner.phones].filter(({ transport }) => transport);
  return {
    params: params as JsonObject,
    sending: {
      kind: 'sending',
      id,
      content,
      from: from.owner.account.id,
      to: to.account.id,
      readers: readers.map(({ name }) => name),
    },
  };
}

/** The logical key of an envelope, and what stands for all of it. */
function identify(envelope: JsonObject): Pick<Entry, 'id' | 'content'> {
  const id = `${envelope.from}/${envelope.message_id}`;
  const digest = createHash('sha256').update(canonicalJson(envelope)).digest('base64url');
  return { id, content: `${id}#${digest.slice(0, 16)}` };
}

/** What a page of a timeline shows. */
export function readPage(result: JsonValue): {
  readonly entries: readonly Entry[];
  readonly hasMore: boolean;
} {
  if (!isJsonObject(result) || !Array.isArray(result.items)) throw new Error('this is no page');
  const entries = (result.items as JsonObject[]).map(({ sequence, envelope }) => ({
    sequence: Number(sequence),
    ...identify(envelope as JsonObject),
  }));
  return { entries, hasMore: result.has_more === true };
}
