/**
 * Reads the profiles of contacts and of those who ask: without a local name, a nickname says more than an ID. No
 * notification is sent for a new profile, so each is read again after a while, and when its conversation is opened.
 */
import { isRefusal } from '@posthouse/client/web';
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
  for (const [id, time] of asked) {
    if (id === again || time + freshFor < Date.now()) asked.delete(id);
  }
  if (isReading) return;
  isReading = true;
  let last = '';
  try {
    while (asked.size < most) {
      const next = app.contacts.value.find(
        ({ account: id, alias, status }) =>
          alias === undefined && ['active', 'asks', 'waiting'].includes(status) && !asked.has(id),
      );
      if (next === undefined) return;
      last = next.account;
      asked.set(last, Date.now());
      const profile = await app.account.profiles.resolve(last).catch((error: unknown) => {
        // What the relay refused is refused again. Without a connection, all others fail as well.
        if (!isRefusal(error)) throw error;
      });
      if (profile && profile.nickname !== (next.nickname ?? '')) {
        await app.namesChanged();
        tabs.postMessage('other');
      }
    }
  } catch {
    // It is read when there is a connection again.
    asked.delete(last);
  } finally {
    isReading = false;
  }
}
