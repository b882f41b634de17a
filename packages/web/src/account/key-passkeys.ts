/**
 * Passkeys that open the account key, next to the password of a backup (decision 0043). This device keeps their
 * documents, which hold no secret and name the account, and a backup file has them, too. A passkey is never the only
 * way to the key: it is made together with a backup, or after one was opened.
 */
import { isClientError } from '@posthouse/client/web';
import { type PasskeyDocument, passkeyStatus } from '@posthouse/client/web/passkey';
import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { l } from './lock-text.ts';

const place = 'posthouse.key-passkeys';
/** Passkeys of one key that are used. */
const most = 16;
/** Bytes of a backup file that is searched for them. */
const mostBytes = 65_536;

const kept = signal(localStorage.getItem(place) ?? '');
// Other tabs change them, too.
addEventListener('storage', ({ key, newValue }) => {
  if (key === place) kept.value = newValue ?? '';
});

/** Those of an account that this device keeps. */
export function keptPasskeys(account: string): readonly PasskeyDocument[] {
  return listIn(kept.value).filter((each) => each?.account === account);
}

/** Keeps the documents, instead of those that were kept before. */
export function keepPasskeys(passkeys: readonly PasskeyDocument[]): void {
  const text = passkeys.length === 0 ? '' : JSON.stringify(passkeys);
  if (text === '') localStorage.removeItem(place);
  else localStorage.setItem(place, text);
  kept.value = text;
}

/** The documents in a backup file; what is wrong with them is found when one is used. */
export async function passkeysIn(file: Blob): Promise<readonly PasskeyDocument[]> {
  if (file.size > mostBytes) return [];
  try {
    const { extra } = JSON.parse(await file.text());
    return listIn(JSON.stringify(extra?.posthouse_passkeys ?? []));
  } catch {
    return [];
  }
}

function listIn(text: string): readonly PasskeyDocument[] {
  try {
    const found: unknown = JSON.parse(text);
    return Array.isArray(found) ? found.slice(0, most) : [];
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
