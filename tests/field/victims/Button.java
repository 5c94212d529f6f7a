// SPDX-License-Identifier: MIT OR Apache-2.0

import java.awt.BorderLayout;
import java.awt.event.KeyAdapter;
import java.awt.event.KeyEvent;
import javax.swing.JFrame;
import javax.swing.JLabel;
import javax.swing.JTextArea;

/** A window with a text and two keys: F8 computes for two seconds, F9 sleeps for two seconds. */
public final class Button {
    private static void compute() {
        long end = System.nanoTime() + 2_000_000_000L;
        double sum = 0;
        while (System.nanoTime() < end) {
            sum += Math.sqrt(sum + 1);
        }
    }

    private static void sleep() {
        try {
            Thread.sleep(2000);
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }

    public static void main(String[] words) {
        JFrame frame = new JFrame("Button");
        JTextArea text = new JTextArea(20, 60);
        JLabel said = new JLabel("ready");
        text.addKeyListener(new KeyAdapter() {
            @Override
            public void keyPressed(KeyEvent event) {
                if (event.getKeyCode() == KeyEvent.VK_F8) {
                    compute();
                    said.setText(said.getText() + " computed");
                } else if (event.getKeyCode() == KeyEvent.VK_F9) {
                    sleep();
                    said.setText(said.getText() + " slept");
                }
            }
        });
        frame.add(text, BorderLayout.CENTER);
        frame.add(said, BorderLayout.SOUTH);
        frame.setDefaultCloseOperation(JFrame.EXIT_ON_CLOSE);
        frame.pack();
        frame.setLocation(100, 100);
        frame.setVisible(true);
    }
}
