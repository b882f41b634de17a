import type { PostState } from '../channels/projection.ts';
import {
  type HashResolution,
  hashReferenceResolver,
  isHashReference,
} from '../messages/hash-reference.ts';
import { bodyTargets } from './targets.ts';

/**
 * Resolves the attachment references of a post's body, in order of appearance. Only the attachments
 * after the last edit count: a removed attachment is not looked up in an earlier set, another post
 * or on the network (06 §2, §6.2).
 *
 * @example
 * import { postReferences } from '@posthouse/protocol/markdown';
 * postReferences(postState(post)); // [{ status: 'resolved', index: 0 }]
 */
export function postReferences({ body, attachments = [] }: PostState): HashResolution[] {
  if (body === undefined) return [];
  const references = bodyTargets(body).filter(({ uri }) => isHashReference(uri));
  const resolve = hashReferenceResolver(attachments);
  return references.map(({ uri }) => resolve(uri));
}
