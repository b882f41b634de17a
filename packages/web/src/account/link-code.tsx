import { Handout } from '../parts/controls.tsx';
import { later } from '../parts/later.tsx';

const Qr = later(async () => (await import('./qr.tsx')).Qr, true);

/** A link for other people: as a QR code, and as text to copy or share. */
export function LinkCode({
  link,
  title,
  label = title,
}: {
  readonly link: string;
  /** Of what is shared. */
  readonly title: string;
  /** Of the QR code. */
  readonly label?: string;
}) {
  return (
    <>
      <Qr value={link} label={label} />
      <Handout value={link} title={title} />
    </>
  );
}
