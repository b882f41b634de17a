/** People write names; the protocol has account IDs. */
import { AccountId, checkSchema } from '@posthouse/protocol';
import type { Account } from '../account.ts';
import { aliasOf } from '../contacts/contact-rows.ts';
import { UsageError } from './exit.ts';
import { printable } from './output.ts';

/** The account of a contact's local name, or of an account ID. @throws UsageError */
export async function accountOf(account: Account, name: string): Promise<string> {
  if (name === 'me' || name === account.id) return account.id;
  if (name.startsWith('neo:')) {
    checkAccount(name);
    return name;
  }
  const found = (await account.contacts.list()).filter((contact) => aliasOf(contact) === name);
  const [first, second] = found;
  if (first === undefined) throw new UsageError(`nobody is called ${name}`);
  if (second !== undefined) throw new UsageError(`several contacts are called ${name}`);
  return first.account;
}

/** @throws UsageError */
function checkAccount(id: string): void {
  try {
    checkSchema(AccountId, id);
  } catch {
    throw new UsageError(`${id} is no account`);
  }
}

/** How contacts are written: local name, else account ID. */
export async function namesOf(account: Account): Promise<(id: string) => string> {
  const aliases = new Map(
    (await account.contacts.list()).map((contact) => [
      contact.account,
      aliasOf(contact) || undefined,
    ]),
  );
  return (id) => (id === account.id ? 'me' : printable(aliases.get(id) ?? id));
}

/** The local name beside an account that is written anyway; nothing where it has none. */
export function aliasIn(name: (id: string) => string, account: string): string {
  const alias = name(account);
  return alias === account ? '' : alias;
}
