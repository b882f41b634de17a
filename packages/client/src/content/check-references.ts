import {
  type ContentReference,
  type MessageBody,
  mayReferToAttachments,
} from '@posthouse/protocol';
import { checkInput } from '../errors.ts';
import { loadMarkdown } from '../load-part.ts';

/**
 * Checks, before sending, that every reference of a body finds exactly one of the attachments (04
 * §8.1). The Markdown parser is loaded if the body may have references, and not before: most
 * programs never send one.
 *
 * @param name what is written, for the message of the error
 * @throws ClientError `invalid_input`; `part_unavailable` if the parser cannot be loaded now
 */
export async function checkReferences(
  name: string,
  {
    body,
    attachments = [],
  }: { readonly body?: MessageBody; readonly attachments?: readonly ContentReference[] },
): Promise<void> {
  if (body === undefined || !mayReferToAttachments(body)) return;
  const { checkBodyReferences } = await loadMarkdown();
  checkInput(name, () => checkBodyReferences(body, attachments));
}
