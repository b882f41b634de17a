/**
 * Reads the profiles of contacts and of those who ask: without a local name, a nickname says more than an ID. No
 * notification is sent for a new profile, so each is read again after a while, and when its conversation is opened.
 */

import type { Contact } from '@posthouse/client';
import { isClientError } from '@posthouse/client/web';
import { type ReadonlySignal, signal } from '@preact/signals';
import type { Host } from './host.ts';

/** The app, whose names these are. */
interface NamedHost extends Host {
  readonly connection: ReadonlySignal<string>;
  namesChanged(): Promise<void>;
}

/** Milliseconds for which a profile is not read again. */
const freshFor = 600_000;
/** Accounts that are asked for in that time: every request of a stranger adds one. */
const most = 100;

/** When the profiles were asked for, by account; Unix milliseconds. */
const asked = new Map<string, number>();
let isReading = false;
/** Whose profile is read in any case. */
let first: string | undefined;
let shown: NamedHost | undefined;

/** Counts changes of the own profile, also those of other tabs. */
export const ownChanges = signal(0);

/** Says `own` or `other`, and nothing of a profile: each tab reads the store that all share. */
const tabs = new BroadcastChannel('posthouse.profiles');
tabs.onmessage = ({ data }) => {
  if (data === 'own') ownChanges.value += 1;
  else void shown?.namesChanged();
};

/** Notes that this tab published the own profile. */
export function ownProfileChanged(): void {
  ownChanges.value += 1;
  tabs.postMessage('own');
}

function begin(app: NamedHost): void {
  shown = app;
  const again = () => {
    if (!document.hidden && app.connection.peek() === 'connected') void readProfiles(app);
  };
  setInterval(again, freshFor);
  addEventListener('visibilitychange', again);
}

/**
 * Reads those that are not fresh, one after the other. The client keeps each, and names contacts with it.
 *
 * @param again an account whose profile is read in any case
 */
export async function readProfiles(app: NamedHost, again?: string): Promise<void> {
  if (shown === undefined) begin(app);
  if (again !== undefined) first = again;
  if (isReading) return;
  isReading = true;
  try {
    for (;;) {
      const next = nextOf(app.contacts.value);
      if (next === undefined) return;
      const { account } = next;
      if (account === first) first = undefined;
      const before = asked.get(account);
      asked.set(account, Date.now());
      try {
        const profile = await app.account.profiles.resolve(account);
        if (profile && profile.nickname !== (next.nickname ?? '')) {
          await app.namesChanged();
          tabs.postMessage('other');
        }
      } catch (error) {
        // Of any other fault, such as a refusal, nothing is gained by asking again at once.
        if (!isClientError(error, 'relay_unreachable')) continue;
        // All others would fail as well. It is read when there is a connection again.
        if (before === undefined) asked.delete(account);
        else asked.set(account, before);
        return;
      }
    }
  } finally {
    isReading = false;
  }
}

/** Whose profile is read next: that which is read in any case, then the one that was read longest ago. */
function nextOf(contacts: readonly Contact[]): Contact | undefined {
  const stale = Date.now() - freshFor;
  const named = contacts.filter(
    ({ alias, status }) => alias === undefined && ['active', 'asks', 'waiting'].includes(status),
  );
  const timeOf = ({ account }: Contact) => asked.get(account) ?? 0;
  const wanted = named.find(({ account }) => account === first);
  if (wanted !== undefined) return wanted;
  if ([...asked.values()].filter((time) => time > stale).length >= most) return undefined;
  const oldest = named.reduce<Contact | undefined>(
    (one, other) => (one !== undefined && timeOf(one) <= timeOf(other) ? one : other),
    undefined,
  );
  return oldest !== undefined && timeOf(oldest) <= stale ? oldest : undefined;
}
