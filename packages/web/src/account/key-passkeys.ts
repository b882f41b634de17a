/**
 * Passkeys that open the account key, next to the password of a backup (decision 0043). This device keeps their
 * documents, which hold no secret and name the account, and a backup file has them, too. A passkey is never the only
 * way to the key: it is made together with a backup, or after one was opened.
 */
import { isClientError } from '@posthouse/client/web';
import { type PasskeyDocument, passkeyStatus } from '@posthouse/client/web/passkey';
import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { loadCryptography } from '../engine/load-part.ts';
import { isLocked } from '../state/stores.ts';
import { l } from './lock-text.ts';

const storageKey = 'posthouse.key-passkeys';
/** Passkeys of one key at most. */
const maxPasskeys = 16;
/** Bytes of a backup file that is searched for them. */
const maxFileBytes = 65_536;

const kept = signal(localStorage.getItem(storageKey) ?? '[]');
// Other tabs change them, too.
addEventListener('storage', ({ key, newValue }) => {
  if (key === storageKey) kept.value = newValue ?? '[]';
});

/** Those of an account that this device keeps, of all addresses. */
export function keptPasskeys(account: string): readonly PasskeyDocument[] {
  try {
    const found: readonly PasskeyDocument[] = JSON.parse(kept.value);
    return found.filter((each) => each.account === account);
  } catch {
    return [];
  }
}

/** Selects those that may open something at this address. */
export function usableHere(passkeys: readonly PasskeyDocument[]): readonly PasskeyDocument[] {
  return passkeys.filter(({ rp_id }) => rp_id === location.hostname);
}

/**
 * Keeps documents of an account, next to those that are kept. A locked device keeps none: they would open the account key
 * without what opens the lock.
 */
export function keepPasskeys(account: string, added: readonly PasskeyDocument[]): void {
  if (isLocked()) return;
  const others = stored(account).filter((one) => !added.some((each) => isSame(one, each)));
  store([...others, ...added.filter((each) => each.account === account)]);
}

/** Keeps a document no longer. */
export function forgetPasskey(one: PasskeyDocument): void {
  store(stored(one.account).filter((each) => !isSame(one, each)));
}

const isSame = (one: PasskeyDocument, other: PasskeyDocument) =>
  one.credential_id === other.credential_id;

/** What is kept at this moment: another tab may have changed it. */
function stored(account: string): readonly PasskeyDocument[] {
  kept.value = localStorage.getItem(storageKey) ?? '[]';
  return keptPasskeys(account);
}

function store(passkeys: readonly PasskeyDocument[]): void {
  const text = JSON.stringify(passkeys.slice(-maxPasskeys));
  if (passkeys.length === 0) localStorage.removeItem(storageKey);
  else localStorage.setItem(storageKey, text);
  kept.value = text;
}

/** The whole documents of account keys in a backup file; anybody may have added others. */
export async function passkeysIn(file: Blob): Promise<readonly PasskeyDocument[]> {
  if (file.size > maxFileBytes) return [];
  try {
    const { extra } = JSON.parse(await file.text());
    const found: unknown = extra?.posthouse_passkeys;
    if (!Array.isArray(found)) return [];
    const { isPasskeyDocument } = await loadCryptography();
    return found
      .slice(0, maxPasskeys)
      .filter((each) => isPasskeyDocument(each) && each.purpose === 'account-key');
  } catch {
    return [];
  }
}

/** Whether this browser may have passkeys that open keys; `undefined` until it is known. */
export function useCanPasskey(): boolean | undefined {
  const [can, setCan] = useState<boolean | undefined>();
  useEffect(() => {
    passkeyStatus().then(
      ({ works }) => setCan(works !== 'no'),
      () => setCan(false),
    );
  }, []);
  return can;
}

/** What is wrong with a passkey; each sentence ends in the password. */
export function passkeyFault(error: unknown): string | undefined {
  return isClientError(error) ? l.passkey[error.code] : undefined;
}
