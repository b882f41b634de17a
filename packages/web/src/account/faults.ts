/** What went wrong with an account or device, in words that say what to do. */

import { visibleText } from '@posthouse/client/visible-text';
import { isClientError, isRefusal } from '@posthouse/client/web';
import { messageOf } from '../parts/fault.tsx';
import { hasSentence, sentenceOf } from '../text/faults.ts';
import { inLanguage } from '../text/index.ts';

const en = {
  offline: 'There was no answer. Check your connection and try again.',
  key: 'This device has no copy of the account’s key. Do it on the device with the key, or with your backup.',
  busy: 'The relay has had too many requests. Try again in a while.',
  soon: 'The relay cannot do it now. Try again in a while.',
  misbehaved: 'The relay’s answer is not valid. Nothing was changed here.',
  full: 'There is no space left on this device.',
  other: 'Another page or device changed the same. Reload and look before you try again.',
  registration: 'That relay takes new accounts by invite only, or after its operator agreed.',
  noRelay: 'That relay is not part of this network, or none can be reached.',
};

const de: typeof en = {
  offline: 'Es kam keine Antwort. Prüfe die Verbindung und versuch es noch einmal.',
  key: 'Dieses Gerät hat keine Kopie des Kontoschlüssels. Mach es auf dem Gerät mit dem Schlüssel, oder mit deiner Sicherung.',
  busy: 'Das Relay hatte zu viele Anfragen. Versuch es in einer Weile noch einmal.',
  soon: 'Das Relay kann es gerade nicht. Versuch es in einer Weile noch einmal.',
  misbehaved: 'Die Antwort des Relays ist ungültig. Hier wurde nichts geändert.',
  full: 'Auf diesem Gerät ist kein Platz mehr.',
  other:
    'Eine andere Seite oder ein anderes Gerät hat dasselbe geändert. Lade neu und sieh nach, bevor du es noch einmal versuchst.',
  registration:
    'Dieses Relay nimmt neue Konten nur mit Einladung, oder nachdem der Betreiber zugestimmt hat.',
  noRelay: 'Dieses Relay gehört nicht zu diesem Netz, oder keines ist zu erreichen.',
};

const t = inLanguage({ en, de });

const byCode: Readonly<Record<string, string>> = {
  relay_unreachable: t.offline,
  account_key_required: t.key,
  relay_misbehaviour: t.misbehaved,
  store_full: t.full,
  move_conflict: t.other,
  registration_refused: t.registration,
  no_relay: t.noRelay,
};

/** An error whose message is a sentence for people, in their language. */
export class Said extends Error {}

/** Returns a sentence for people. */
export function faultText(error: unknown): string {
  if (error instanceof Said) return error.message;
  if (isRefusal(error, 'rate_limited')) return t.busy;
  if (isRefusal(error, 'temporarily_unavailable')) return t.soon;
  const own = isClientError(error) ? byCode[error.code] : undefined;
  if (own !== undefined) return own;
  const sentence = sentenceOf(error);
  return hasSentence(error) ? sentence : `${sentence} (${visibleText(messageOf(error))})`;
}
