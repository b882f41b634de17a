/** Sentences for the codes of errors: of the client (docs/sdk.md) and of relays (chapter 02, section 4.1). */
import { isClientError, isRefusal } from '@posthouse/client/web';
import { inLanguage } from './index.ts';

const en: Readonly<Record<string, string>> = {
  relay_unreachable: 'The relay cannot be reached. Try again when you are online.',
  relay_refused: 'The relay refused this.',
  relay_misbehaviour:
    'The relay answered something that cannot be true. Nothing of it was used. Try again later.',
  no_relay: 'No relay that can do this was found.',
  store_full: 'This device has no space left. Make room, then try again.',
  store_unavailable: 'The data of this app cannot be opened. Close other tabs of it and reload.',
  store_damaged: 'The data of this app is damaged. Use your backup on this device again.',
  part_unavailable: 'A part of the app could not be loaded. Reload when you are online.',
  account_key_required: 'This device has no copy of the account’s key. Use your backup.',
  verification_failed: 'This is not valid: it was altered, is incomplete, or has ended.',
  wrong_device: 'This is for another device or account.',
  device_removed: 'The account does not have this device any more.',
  contacts_unreached: 'Some contacts know no other device of yours yet. Try again later.',
  content_gone: 'Its host does not have this any more. Ask for it again.',
  no_recipient_device: 'The other person has no device that could read it now.',
  not_a_contact: 'You are not contacts: one of you has to ask first.',
  already_sent: 'Too late: it was sent already.',
  cancelled: 'It was cancelled.',
  not_a_member: 'You are not a member of this group.',
  not_permitted: 'You may not do this here.',
  unknown_channel: 'You do not follow this channel.',
  registration_refused:
    'This relay does not take a new account now. It may want an invite code of its operator.',
  move_conflict: 'Another move of the account is not finished.',
  group_blocked:
    'The history of this group does not verify from some point on. Nothing later is used.',
  group_behind: 'The group has more to read first. Wait a moment, then try again.',
  group_key_missing: 'This device has no key of the group yet. Wait, or ask for access again.',
  invalid_input: 'This cannot be sent: something is empty, too long or not allowed.',
  bad_request: 'The relay did not understand this.',
  unauthorized: 'The relay does not accept this device now. Reload the page.',
  forbidden: 'You may not do this here.',
  invalid_signature: 'The relay could not verify this.',
  device_unknown: 'The relay does not know this device any more.',
  clock_skew: 'The clock of this device is wrong. Set it, then try again.',
  not_found: 'There is no such thing at its relay: it was removed, has ended, or never was there.',
  state_conflict: 'Somebody changed this at the same time. Look again, then try once more.',
  request_too_large: 'This is too large for the relay.',
  rate_limited: 'This was too much at a time, or a limit of the relay is reached. Try again later.',
  method_not_found: 'This relay does not offer this.',
  unknown: 'Something went wrong.',
};

const de: typeof en = {
  relay_unreachable:
    'Das Relay ist nicht erreichbar. Versuche es noch einmal, wenn du online bist.',
  relay_refused: 'Das Relay hat das abgelehnt.',
  relay_misbehaviour:
    'Das Relay hat etwas geantwortet, das nicht stimmen kann. Nichts davon wurde verwendet. Versuche es später noch einmal.',
  no_relay: 'Es wurde kein Relay gefunden, das dies kann.',
  store_full: 'Dieses Gerät hat keinen Platz mehr. Schaffe Platz und versuche es noch einmal.',
  store_unavailable:
    'Die Daten dieser App lassen sich nicht öffnen. Schließe ihre anderen Tabs und lade neu.',
  store_damaged:
    'Die Daten dieser App sind beschädigt. Richte dieses Gerät mit deiner Sicherung neu ein.',
  part_unavailable: 'Ein Teil der App ließ sich nicht laden. Lade neu, wenn du online bist.',
  account_key_required: 'Dieses Gerät hat keine Kopie des Kontoschlüssels. Nimm deine Sicherung.',
  verification_failed: 'Das ist nicht gültig: verändert, unvollständig oder abgelaufen.',
  wrong_device: 'Das ist für ein anderes Gerät oder Konto.',
  device_removed: 'Das Konto hat dieses Gerät nicht mehr.',
  contacts_unreached:
    'Einige Kontakte kennen noch kein anderes Gerät von dir. Versuche es später noch einmal.',
  content_gone: 'Das ist dort nicht mehr gespeichert. Bitte noch einmal darum.',
  no_recipient_device: 'Die andere Person hat gerade kein Gerät, das es lesen könnte.',
  not_a_contact: 'Ihr seid keine Kontakte: Eine oder einer von euch muss zuerst anfragen.',
  already_sent: 'Zu spät: Es ist schon gesendet.',
  cancelled: 'Es wurde abgebrochen.',
  not_a_member: 'Du bist kein Mitglied dieser Gruppe.',
  not_permitted: 'Das darfst du hier nicht.',
  unknown_channel: 'Du folgst diesem Kanal nicht.',
  registration_refused:
    'Dieses Relay nimmt gerade kein neues Konto an. Vielleicht braucht es einen Einladungscode.',
  move_conflict: 'Ein anderer Umzug des Kontos ist noch nicht zu Ende.',
  group_blocked:
    'Der Verlauf dieser Gruppe lässt sich ab einer Stelle nicht prüfen. Späteres wird nicht verwendet.',
  group_behind:
    'Von der Gruppe ist erst noch mehr zu lesen. Warte kurz und versuche es noch einmal.',
  group_key_missing:
    'Dieses Gerät hat noch keinen Schlüssel der Gruppe. Warte, oder bitte um neuen Zugang.',
  invalid_input: 'Das lässt sich nicht senden: Etwas ist leer, zu lang oder nicht erlaubt.',
  bad_request: 'Das Relay hat das nicht verstanden.',
  unauthorized: 'Das Relay nimmt dieses Gerät gerade nicht an. Lade die Seite neu.',
  forbidden: 'Das darfst du hier nicht.',
  invalid_signature: 'Das Relay konnte das nicht prüfen.',
  device_unknown: 'Das Relay kennt dieses Gerät nicht mehr.',
  clock_skew: 'Die Uhr dieses Geräts geht falsch. Stelle sie und versuche es noch einmal.',
  not_found: 'Das gibt es bei seinem Relay nicht: entfernt, abgelaufen oder nie da gewesen.',
  state_conflict:
    'Jemand hat das zur gleichen Zeit geändert. Sieh noch einmal nach und versuche es dann erneut.',
  request_too_large: 'Das ist zu groß für das Relay.',
  rate_limited:
    'Das war zu viel auf einmal, oder eine Grenze des Relays ist erreicht. Versuche es später noch einmal.',
  method_not_found: 'Dieses Relay bietet das nicht an.',
  unknown: 'Etwas ist schiefgegangen.',
};

const sentences = inLanguage({ en, de });

/** The code that says what to call an error: of the relay if it has one, else of the client. */
function codeOf(error: unknown): string | undefined {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  const codes = [
    isRefusal(error) ? error.error : undefined,
    isClientError(error) || typeof code === 'string' ? code : undefined,
  ];
  return codes.find((each) => typeof each === 'string' && Object.hasOwn(sentences, each)) as
    | string
    | undefined;
}

/** Whether there is more to say than that something went wrong. */
export const hasSentence = (error: unknown) => codeOf(error) !== undefined;

/** Returns a sentence for an error. */
export function sentenceOf(error: unknown): string {
  return sentences[codeOf(error) ?? 'unknown'] as string;
}
