/** Local contact names on the command line, and the account IDs that they stand for. */
import { AccountId, checkSchema } from '@posthouse/protocol';
import type { Account } from '../account.ts';
import { visibleName } from '../content/visible-text.ts';
import type { ConversationKey } from '../conversations/conversation-rows.ts';
import { isClientError } from '../errors.ts';
import type { AccountSession } from './client-session.ts';
import { UsageError } from './exit.ts';
import { printable, quoted } from './output.ts';

/**
 * Resolves a contact's local name, `me`, an account ID or the last six or more characters of a contact's to
 * an account ID.
 * @throws UsageError
 */
export async function accountOf(account: Account, name: string): Promise<string> {
  requireName(name);
  if (name === 'me' || name === account.id) return account.id;
  if (name.startsWith('neo:')) {
    checkAccount(name);
    return name;
  }
  const contacts = await account.contacts.list();
  const ending = /^…?([1-9A-HJ-NP-Za-km-z]{6,})$/.exec(name)?.[1];
  const named = contacts.filter(({ alias }) => alias === name);
  const found =
    named.length > 0 || ending === undefined
      ? named
      : contacts.filter((contact) => contact.account.endsWith(ending));
  const [first, second] = found;
  if (second !== undefined) {
    throw new UsageError(`several contacts are called ${name}: use the account ID`);
  }
  if (first !== undefined) return first.account;
  // Others choose their nicknames: one alone says not who is meant.
  const self = contacts.find(({ nickname }) => nickname === name);
  const calledSo =
    self && `; …${self.account.slice(-6)} calls itself so: use that, or courier contacts rename`;
  throw new UsageError(
    `no contact is called ${name}${calledSo ?? ': courier contacts lists them'}`,
  );
}

/**
 * Checks a local name that a person gives to a contact.
 * @throws UsageError for one that commands would take for something else
 */
export async function checkLocalName(account: Account, id: string, name: string): Promise<void> {
  requireName(name);
  if (name !== name.trim()) throw new UsageError('the name begins or ends with white space');
  if (name === 'me' || name.startsWith('neo:')) {
    throw new UsageError(`${name} has a meaning of its own: choose another name`);
  }
  const others = (await account.contacts.list()).filter((contact) => contact.account !== id);
  if (others.some(({ alias }) => alias === name)) {
    throw new UsageError(`another contact is called ${name}: choose another name`);
  }
}

/** Refuses an empty name, such as that of an unset variable. @throws UsageError */
export function requireName(name: string): void {
  if (name === '') throw new UsageError('the name is empty: give a name or an ID');
}

/** @throws UsageError */
function checkAccount(id: string): void {
  try {
    checkSchema(AccountId, id);
  } catch {
    throw new UsageError(`${id} is not an account ID: courier contacts lists them`);
  }
}

/** Accounts whose profiles one command reads, and how long that may take in milliseconds. */
const mostProfiles = 20;
const profileTime = 3_000;

/** What profiles gave, by account ID: each is read once by a command. */
const nicknames = new WeakMap<Account, Map<string, string>>();

type NameOf = (id: string) => string;

/**
 * Returns a function from account ID to what is printed: `me`, the local name, the nickname of the
 * profile, stored or read now, in quotes with the end of the ID, or the ID.
 *
 * @param format formats what is printed: profiles are read of the accounts that it names
 */
export async function namesOf(
  session: NamingSession,
  format?: (name: NameOf) => unknown,
): Promise<NameOf> {
  const { account, out } = session;
  const contacts = await account.contacts.list();
  const aliases = new Map(
    contacts.map(({ account: id, alias, nickname }) => [
      id,
      alias ?? (nickname && namedWithEnd(nickname, id)),
    ]),
  );
  const known = nicknames.get(account) ?? new Map<string, string>();
  nicknames.set(account, known);
  const unnamed = new Set<string>();
  const name = (id: string) => {
    if (id === account.id) return 'me';
    if (out.showsIds) return id;
    const found = aliases.get(id) || known.get(id);
    if (found === undefined) unnamed.add(id);
    return printable(found ?? id);
  };
  if (format === undefined || out.isJson) return name;
  format(name);
  await readNicknames(session, [...unnamed].slice(0, mostProfiles), known);
  return name;
}

async function readNicknames(
  { account, signal }: Pick<AccountSession, 'account' | 'signal'>,
  ids: readonly string[],
  known: Map<string, string>,
): Promise<void> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(profileTime)]);
  const read = async (id: string) => {
    // Stored first: a profile that cannot be read leaves the ID, and is not asked for again.
    known.set(id, id);
    const profile = await account.profiles.resolve(id, { signal: bounded });
    const { nickname = '' } = profile ?? {};
    known.set(id, nickname === '' ? id : namedWithEnd(nickname, id));
  };
  await Promise.allSettled(ids.map(read));
  signal.throwIfAborted();
}

/** What names are looked up in. */
export type NamingSession = Pick<AccountSession, 'account' | 'out' | 'signal'>;

/**
 * Returns what notes call a conversation, from what is stored: a contact by its local name, a group or
 * channel by its name in quotes with the end of the ID. Without a name it is the ID.
 */
export async function conversationName(
  session: NamingSession,
  { kind, id }: ConversationKey,
): Promise<string> {
  const { account, out } = session;
  if (kind === 'person') return (await namesOf(session))(id);
  if (out.showsIds) return id;
  const name = kind === 'group' ? await groupName(account, id) : await channelName(account, id);
  return name === undefined || name === '' ? id : namedWithEnd(name, id);
}

async function groupName(account: Account, id: string): Promise<string | undefined> {
  return (await account.groups.get(id).catch(undefinedIfUnknown))?.state?.name;
}

async function channelName(account: Account, id: string): Promise<string | undefined> {
  return (await account.channels.get(id).catch(undefinedIfUnknown))?.descriptor.name;
}

/** The group or channel may have been forgotten since the event. */
function undefinedIfUnknown(error: unknown): undefined {
  if (!isClientError(error)) throw error;
}

/** Others choose names freely: the end of the ID tells two of one name apart. */
function namedWithEnd(name: string, id: string): string {
  return `${quoted(visibleName(name))} (…${id.slice(-6)})`;
}

/** Returns an account's name and its ID; the ID alone if it has no name. */
export async function nameAndId(session: NamingSession, id: string): Promise<string> {
  const name = await namesOf(session, (nameOf) => nameOf(id));
  const alias = aliasIn(name, id).replace(/ \(….{6}\)$/, '');
  return alias === '' ? id : `${alias} (${id})`;
}

/** Returns the local name of an account whose ID is printed as well; empty if it has none. */
export function aliasIn(name: (id: string) => string, account: string): string {
  const alias = name(account);
  return alias === account ? '' : alias;
}
