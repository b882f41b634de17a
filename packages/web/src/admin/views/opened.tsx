/** One thing of a list, opened in its place. */
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { sentenceOf } from '../notice.ts';
import { Button, Heading } from '../parts.tsx';
import { call } from '../session.ts';

/** Reads one thing and shows it, with a way back to the list. */
export function Opened<Found>({
  title,
  verb,
  params,
  close,
  children,
}: {
  readonly title: string;
  readonly verb: `${string}/${string}`;
  readonly params: object;
  readonly close: () => void;
  /** `reload` reads it again. */
  readonly children: (found: Found, reload: () => Promise<void>) => ComponentChildren;
}) {
  const [found, setFound] = useState<Found>();
  const [fault, setFault] = useState('');
  const load = async () => {
    try {
      setFound(await call<Found>(verb, params));
    } catch (error) {
      setFault(sentenceOf(error));
    }
  };
  useEffect(() => {
    void load();
  }, []);
  return (
    <>
      <Button work={close}>← Back to the list</Button>
      <Heading>{title}</Heading>
      {fault !== '' && (
        <p class="fault" role="alert">
          {fault}
        </p>
      )}
      {found === undefined ? fault === '' && <p role="status">Reading …</p> : children(found, load)}
    </>
  );
}
