"""What every room needs: imports when first asked for, deadlines, decompositions, free memory."""
